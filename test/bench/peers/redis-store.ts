/**
 * Mailboxes as streams of Redis. The commands of a group are written at once, over several
 * connections: Redis reads 16 KiB of each in a turn of its loop, and flushes its file once in a
 * turn, before it answers.
 */
import { connect, type Socket } from "node:net"
import type { Deposit, Store } from "./store.ts"

const connections = 16
/** About what Redis reads of one connection in a turn. */
const commandsPerWriteMax = 32
const groupsInFlight = 4

/** The key of each mailbox's stream begins with it. */
const prefix = "mailbox:"

/** A command in the protocol of Redis (RESP 2). Each character is one byte. */
export const commandOf = (...words: ReadonlyArray<string>): string =>
  `*${words.length}\r\n${words.map((word) => `$${word.length}\r\n${word}\r\n`).join("")}`

/** A reply: its text, and where the next one begins. */
export interface Reply {
  readonly text: string
  readonly isError: boolean
  readonly end: number
}

const lineEnd = "\r\n"

/** The reply at a position; undefined while it is incomplete. Reads neither arrays nor nil. */
export const replyAt = (received: string, at: number): Reply | undefined => {
  const end = received.indexOf(lineEnd, at)
  if (end === -1) return undefined
  const line = received.slice(at + 1, end)
  const begin = end + lineEnd.length
  if (received[at] !== "$") return { text: line, isError: received[at] === "-", end: begin }
  const length = Number(line)
  const bulkEnd = begin + length + lineEnd.length
  if (received.length < bulkEnd) return undefined
  return { text: received.slice(begin, begin + length), isError: false, end: bulkEnd }
}

interface Waiting {
  readonly replies: number
  readonly texts: Array<string>
  readonly resolve: (texts: ReadonlyArray<string>) => void
  readonly reject: (error: Error) => void
}

class Connection {
  private received = ""
  private readonly waiting: Array<Waiting> = []
  private readonly socket: Socket

  constructor(socket: Socket) {
    this.socket = socket
    socket.setEncoding("latin1").on("data", (text: string) => this.receive(text))
    socket.on("close", () => {
      for (const { reject } of this.waiting.splice(0)) reject(new Error("Redis has disconnected"))
    })
  }

  /** Sends commands at once; resolves to their replies. */
  send(commands: ReadonlyArray<string>): Promise<ReadonlyArray<string>> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ replies: commands.length, texts: [], resolve, reject })
      this.socket.write(commands.join(""), "latin1")
    })
  }

  private receive(text: string): void {
    this.received += text
    let at = 0
    for (;;) {
      const reply = replyAt(this.received, at)
      const first = this.waiting[0]
      if (reply === undefined || first === undefined) break
      at = reply.end
      if (reply.isError) first.reject(new Error(`Redis answered ${reply.text}`))
      first.texts.push(reply.text)
      if (first.texts.length < first.replies) continue
      first.resolve(first.texts)
      this.waiting.shift()
    }
    this.received = this.received.slice(at)
  }
}

const connected = (path: string): Promise<Connection> =>
  new Promise((resolve, reject) => {
    const socket = connect(path, () => resolve(new Connection(socket)))
    socket.once("error", reject)
  })

const add = ({ body, mailbox }: Deposit): string =>
  commandOf("XADD", prefix + mailbox, "*", "document", body.toString("latin1"))

/** `path`: of the socket. */
export const openRedis = async (path: string): Promise<Store> => {
  const pool = await Promise.all(Array.from({ length: connections }, () => connected(path)))
  let next = 0
  const send = (commands: ReadonlyArray<string>) => {
    const connection = pool[next++ % connections]
    if (connection === undefined) throw new Error("there are no connections")
    return connection.send(commands)
  }
  const mailboxes = new Set<string>()
  return {
    groupsInFlight,
    groupMax: connections * commandsPerWriteMax,
    write: async (group) => {
      const parts: Array<Promise<unknown>> = []
      for (let from = 0; from < group.length; from += commandsPerWriteMax) {
        const part = group.slice(from, from + commandsPerWriteMax)
        for (const { mailbox } of part) mailboxes.add(mailbox)
        parts.push(send(part.map(add)))
      }
      await Promise.all(parts)
    },
    count: async () => {
      const lengths = await send([...mailboxes].map((one) => commandOf("XLEN", prefix + one)))
      return lengths.reduce((sum, length) => sum + Number(length), 0)
    }
  }
}
