"""Telling browsers and programs at once of what has changed, for one query a second however many listen.

A process has one `Hub`, which asks the database on behalf of all its streams. A page is told topics and
never what happened: it fetches itself again. Who follows a stream of events is told its events.

    GET /horizon/signals?topics=jobs&topics=queue:mail

    id: 118,4
    event: changed                              one of the topics has come further; at most once a second
    data: {"jobs": "118", "queue:mail": "4"}    those that have, and how far: only that it differs says something

    event: stale                                the database does not answer; `live` once it does again
    data: 2026-03-01T12:03:10Z                  since when

    : ping                                      every 15 s in which there was nothing else to tell

The id holds how far each topic was, so that a browser which comes back with it is told what it missed. One
that comes without is told every topic once: something may have happened since its page was made.
"""
