"""What every request and every answer passes, whichever route it is for."""
