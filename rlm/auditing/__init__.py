"""An audit: the files of a folder as records, read in parts, with findings that code has looked up.

Layout:

- `audit`: the front for `audit`
- `folder` `ignores` `withheld`: which files are read, and why others are not
- `findings` `report`: what was found and where it stands, and all of that together
- `bench`: the sensor of the leaves, the union of their findings, and the verdict on it
- `prompts`: what a leaf is told
- `table` `sarif` `files`: findings on a terminal, for code scanners, and as files
"""
