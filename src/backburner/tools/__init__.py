"""What models and chats see of background work: words in, calls of the runtime out."""
