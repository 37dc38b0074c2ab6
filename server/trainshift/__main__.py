"""`python -m trainshift` is the `trainshift` command."""

from trainshift.cli.main import main

if __name__ == "__main__":
    main()
