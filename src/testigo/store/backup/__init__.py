"""A backup of one installation: its tables and its blobs as they were at one moment, in a folder (spec D-22).

    manifest.json          what there is: tables with their columns, rows and digests; blobs; versions
    tables/<name>.copy.gz  the rows of a table, in the order of its key, as PostgreSQL's COPY writes them as text
    blobs/                 the blobs, as a blob store keeps them

All tables are read in one snapshot; blobs are copied after it was taken, so that whatever a row names was put before.
It is read by COPY and not by pg_dump: so a backup needs no program of the server's version, a table has one digest
wherever it lies, and what was restored is compared with it, row for row.
"""

from testigo.store.backup.manifest import Manifest, TableCopy
from testigo.store.backup.packing import opened, packed
from testigo.store.backup.restoring import check, restore
from testigo.store.backup.saving import save

__all__ = ["Manifest", "TableCopy", "check", "opened", "packed", "restore", "save"]
