"""What goes over the wire, as named models: the OpenAPI document is made from them."""
