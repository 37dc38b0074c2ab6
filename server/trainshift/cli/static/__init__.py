"""The command `static`: expanding what Paddle makes static."""
