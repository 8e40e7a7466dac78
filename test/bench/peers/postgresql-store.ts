/**
 * Mailboxes in a table of PostgreSQL: each group is one INSERT, committed when it resolves. The
 * arrays travel in binary form, which needs neither hexadecimal digits nor escapes.
 */
import { hash } from "node:crypto"
import { createRequire } from "node:module"
import { join } from "node:path"
import type { Store } from "./store.ts"

/** The used part of `pg`, which is no dependency of this project. */
interface Pg {
  readonly Client: new(options: {
    readonly host: string
    readonly user: string
    readonly database: string
  }) => Client
}

interface Client {
  readonly connect: () => Promise<unknown>
  readonly query: (
    query: string | {
      readonly name: string
      readonly text: string
      readonly values: ReadonlyArray<Buffer>
    }
  ) => Promise<{ readonly rows: ReadonlyArray<Readonly<Record<string, unknown>>> }>
}

/** Each has one group at a time: while one waits for the disk, the next ones are received. */
const connections = 4
const depositsPerGroupMax = 1_000

/** What PostgreSQL calls these types in its binary form (pg_type.dat). */
const types = { bytea: 17, text: 25, uuid: 2950 } as const

const uuidBytes = 16
const arrayHeadBytes = 20

/** A one-dimensional array as array_recv takes it: dimensions, type, length, and each element. */
export const binaryArray = (
  type: keyof typeof types,
  elements: ReadonlyArray<Uint8Array>
): Buffer => {
  const bytes = elements.reduce((sum, { length }) => sum + 4 + length, arrayHeadBytes)
  const array = Buffer.allocUnsafe(bytes)
  let at = 0
  // One dimension, no nulls, the type, the length, the first index.
  for (const head of [1, 0, types[type], elements.length, 1]) at = array.writeInt32BE(head, at)
  for (const element of elements) {
    at = array.writeInt32BE(element.length, at)
    array.set(element, at)
    at += element.length
  }
  return array
}

/**
 * A repeated document is found by its digest, as the service does. An index in the order of arrival
 * is left out, and whether there is such a mailbox is not asked.
 */
const createTable = `create table if not exists deposits (
  number bigint generated always as identity,
  mailbox text not null,
  digest uuid not null,
  document bytea not null,
  primary key (mailbox, digest)
)`

const insert = `insert into deposits (mailbox, digest, document)
  select * from unnest($1::text[], $2::uuid[], $3::bytea[])
  on conflict do nothing`

const digestOf = (body: Buffer): Buffer => hash("sha256", body, "buffer").subarray(0, uuidBytes)

/** `folder`: of the socket. `modules`: the folder in which `pg` is installed. */
export const openPostgresql = async (folder: string, modules: string): Promise<Store> => {
  // The module has at least what the interface names.
  const { Client } = createRequire(join(modules, "package.json"))("pg") as Pg
  const connected = async (): Promise<Client> => {
    const client = new Client({ host: folder, user: "postgres", database: "postgres" })
    await client.connect()
    return client
  }
  const counting = await connected()
  await counting.query(createTable)
  const idle = await Promise.all(Array.from({ length: connections }, connected))
  return {
    groupsInFlight: connections,
    groupMax: depositsPerGroupMax,
    write: async (group) => {
      const client = idle.pop()
      if (client === undefined) throw new Error("all connections are in use")
      const values = [
        binaryArray("text", group.map(({ mailbox }) => Buffer.from(mailbox))),
        binaryArray("uuid", group.map(({ body }) => digestOf(body))),
        binaryArray("bytea", group.map(({ body }) => body))
      ]
      try {
        await client.query({ name: "insert", text: insert, values })
      } finally {
        idle.push(client)
      }
    },
    count: async () => {
      const { rows } = await counting.query("select count(*)::int as count from deposits")
      return Number(rows[0]?.["count"])
    }
  }
}
