# What backburner.work.depot uses of it.
