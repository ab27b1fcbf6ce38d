"""Every block is data: parameters, role, cost, reach and source; the file names are those of `blocks`."""
