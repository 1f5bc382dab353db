"""`python -m metaprior.cli`: the same as `metaprior`."""

from metaprior.cli import main

if __name__ == "__main__":
    main()
