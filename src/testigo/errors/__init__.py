"""Every error that testigo raises: one tree, one code each, one remedy.

A refusal is raised; "nothing to claim" is a value. The HTTP status and the exit status of the
command line belong to the class, so that every door answers alike (spec model.md, *Errors*).

    Error
    ├── Invalid              the caller's input; nothing was done
    │   ├── PayloadInvalid, PayloadTooLarge
    │   ├── CursorInvalid, InHandler, SettingInvalid, RevisionRequired
    │   ├── EvidenceInvalid, ManifestInvalid, PageInvalid, ArtifactInvalid
    │   └── ConnectionUnsupported
    ├── Conflict             the world is not as the caller thought; nothing was done
    │   ├── KeyConflict, ActionIdCollision, ReceiptExpired
    │   ├── StateConflict, Terminal, RevisionMismatch
    │   ├── ScanEvidenceConflict, WrongPublisher, CollectionChanged
    │   ├── LeaseLost, EpochStale
    │   └── SessionReplaced, SessionBusy
    ├── Missing              NotFound, CursorTooOld
    ├── Denied               who asks may not: Unauthenticated, Forbidden
    ├── Unfulfilled          the job has ended, and not as whoever waits for it asked
    │   └── JobFailed, JobCancelled
    ├── Busy                 retryable: the same command may succeed later
    │   ├── KeyBusy, NotEnded, TooManyRequests, StoragePressure
    │   └── AuthorityUnavailable
    └── Broken               the installation needs a hand: SchemaMismatch, IsolationUnsupported,
                             EmbeddedUnusable, KeysUnusable, BlobsUnusable, BlobCorrupt, BackupInvalid,
                             StreamBroken, ProtocolBroken
"""

from __future__ import annotations

from testigo.errors.broken import (
    BackupInvalid,
    BlobCorrupt,
    BlobsUnusable,
    Broken,
    EmbeddedUnusable,
    IsolationUnsupported,
    KeysUnusable,
    ProtocolBroken,
    SchemaMismatch,
    StreamBroken,
)
from testigo.errors.busy import AuthorityUnavailable, Busy, KeyBusy, NotEnded, StoragePressure, TooManyRequests
from testigo.errors.conflict import (
    ActionIdCollision,
    CollectionChanged,
    Conflict,
    EpochStale,
    KeyConflict,
    LeaseLost,
    ReceiptExpired,
    RevisionMismatch,
    ScanEvidenceConflict,
    SessionBusy,
    SessionReplaced,
    StateConflict,
    Terminal,
    WrongPublisher,
)
from testigo.errors.denied import Denied, Forbidden, Unauthenticated
from testigo.errors.invalid import (
    ArtifactInvalid,
    ConnectionUnsupported,
    CursorInvalid,
    EvidenceInvalid,
    InHandler,
    Invalid,
    ManifestInvalid,
    PageInvalid,
    PayloadInvalid,
    PayloadTooLarge,
    RevisionRequired,
    SettingInvalid,
)
from testigo.errors.missing import CursorTooOld, Missing, NotFound
from testigo.errors.root import Error
from testigo.errors.unfulfilled import JobCancelled, JobFailed, Unfulfilled

__all__ = [
    "ActionIdCollision",
    "ArtifactInvalid",
    "AuthorityUnavailable",
    "BackupInvalid",
    "BlobCorrupt",
    "BlobsUnusable",
    "Broken",
    "Busy",
    "CollectionChanged",
    "Conflict",
    "ConnectionUnsupported",
    "CursorInvalid",
    "CursorTooOld",
    "Denied",
    "EmbeddedUnusable",
    "EpochStale",
    "Error",
    "EvidenceInvalid",
    "Forbidden",
    "InHandler",
    "Invalid",
    "IsolationUnsupported",
    "JobCancelled",
    "JobFailed",
    "KeyBusy",
    "KeyConflict",
    "KeysUnusable",
    "LeaseLost",
    "ManifestInvalid",
    "Missing",
    "NotEnded",
    "NotFound",
    "PageInvalid",
    "PayloadInvalid",
    "PayloadTooLarge",
    "ProtocolBroken",
    "ReceiptExpired",
    "RevisionMismatch",
    "RevisionRequired",
    "ScanEvidenceConflict",
    "SchemaMismatch",
    "SessionBusy",
    "SessionReplaced",
    "SettingInvalid",
    "StateConflict",
    "StoragePressure",
    "StreamBroken",
    "Terminal",
    "TooManyRequests",
    "Unauthenticated",
    "Unfulfilled",
    "WrongPublisher",
]

# An error is known by its public name, wherever its family lives: tracebacks and recorded failures tell that one.
for _name in __all__:
    globals()[_name].__module__ = __name__
