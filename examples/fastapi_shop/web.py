"""A shop with FastAPI: an order and the job that writes its invoice are committed together, or not at all.

export TESTIGO_URL=postgresql://shop@localhost/shop
uvicorn examples.fastapi_shop.web:api
testigo worker examples.fastapi_shop.jobs:app
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel
from sqlalchemy import make_url
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from examples.fastapi_shop.jobs import Invoice, app, invoice
from testigo import Error, Job
from testigo.contrib.fastapi import job_of, lifespan, problem

engine = create_async_engine(make_url(os.environ["TESTIGO_URL"]).set(drivername="postgresql+psycopg"))
sessions = async_sessionmaker(engine, expire_on_commit=False)
STOCK = 100


class Base(DeclarativeBase):
    """The shop's own tables."""


class Order(Base):
    """An order."""

    __tablename__ = "shop_order"

    id: Mapped[int] = mapped_column(primary_key=True)
    items: Mapped[int]


class NewOrder(BaseModel):
    """What a customer asks for."""

    items: int


class Accepted(BaseModel):
    """An order that was accepted, and the job that writes its invoice."""

    order: int
    job: str


@asynccontextmanager
async def serving(api: FastAPI) -> AsyncIterator[None]:
    """The shop's own beginning and end, around testigo's."""
    async with engine.begin() as connection:
        await connection.run_sync(Base.metadata.create_all)
    async with lifespan(app, migrate=True)(api):
        yield
    await engine.dispose()


api = FastAPI(lifespan=serving)
api.add_exception_handler(Error, problem)


@api.post("/orders", status_code=201)
async def order(new: NewOrder) -> Accepted:
    """Take an order. One that cannot be delivered leaves nothing behind, no job either."""
    async with sessions.begin() as session:
        taken = Order(items=new.items)
        session.add(taken)
        await session.flush()
        job = await invoice.options(connection=session).submit_async(order=taken.id, items=new.items)
        if new.items > STOCK:
            raise HTTPException(409, "We have not so many.")
    return Accepted(order=taken.id, job=job.id)


@api.get("/invoices/{job_id}")
async def invoiced(job: Annotated[Job[Invoice], Depends(job_of(app, invoice))], wait: float = 0) -> Invoice:
    """The invoice, for which the caller may wait; 503 while it is not written."""
    return await job.result_async(timeout=min(wait, 10))
