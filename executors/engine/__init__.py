"""What runs the work.

local   workers of this process that pull from a lazy source
units   work that other processes do: what is sent to them and what comes back
dask    units on dask workers, here or on a cluster
"""
