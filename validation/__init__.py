"""Trains real transformers and asks of each prediction of `landscape` whether it came true."""
