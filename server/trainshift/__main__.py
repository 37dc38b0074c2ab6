"""Run the `trainshift` command as `python -m trainshift`."""

from trainshift.entry import main

if __name__ == "__main__":
    main()
