"""Tests of the command line, with a stand-in for the engine."""
