"""`python -m trainshift` is the `trainshift` command."""

from trainshift.entry import main

if __name__ == "__main__":
    main()
