"""The panel: pages that the server writes whole, which work without a script and follow what happens with one."""
