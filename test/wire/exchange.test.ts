/** One exchange above a native response of the test: what no bytes on a socket show for certain. */
import { tmpdir } from "node:os"
import { describe, expect, it, vi } from "vitest"
import { heldUploadBytes, turnBytesMax } from "../../http/limits.ts"
import { UnreadBudget } from "../../http/wire/answers/index.ts"
import { BodyBudget } from "../../http/wire/body-budget.ts"
import { Exchange, PacketEnd, type Shared } from "../../http/wire/exchange.ts"
import { documentPolicy, KeptFields, statusLines } from "../../http/wire/header-fields.ts"
import type { NativeResponse } from "../../http/wire/native-response.ts"
import { BodyError, RequestHeaders } from "../../http/wire/request.ts"
import { SpillFolder, type SpillSettings } from "../../http/wire/uploads/index.ts"

type OnData = Parameters<NativeResponse["onData"]>[0]

/** Records what an exchange does with its connection, and passes a body to it. */
class Connection implements NativeResponse {
  isPaused = false
  isCut = false
  head = ""
  /** The bodies of answers. */
  readonly ended: Array<string> = []
  deliver: OnData = () => undefined
  leave = (): void => {}

  pause(): void {
    this.isPaused = true
  }
  resume(): void {
    this.isPaused = false
  }
  writeStatus(status: string | Uint8Array): void {
    this.head = Buffer.from(status).toString()
  }
  writeHeader(name: string, value: string): void {
    this.head += `\r\n${name}: ${value}`
  }
  write(): boolean {
    return true
  }
  end(body: string | Uint8Array = "", closes = false): void {
    if (closes) this.head += "\r\nConnection: close"
    this.ended.push(body.toString())
  }
  endWithoutBody(): void {
    this.ended.push("")
  }
  tryEnd(body: string | Uint8Array): [boolean, boolean] {
    this.ended.push(body.toString())
    return [true, true]
  }
  close(): void {
    this.isCut = true
    this.leave()
  }
  getWriteOffset(): number {
    return 0
  }
  onWritable(): void {}
  onAborted(handler: () => void): void {
    this.leave = handler
  }
  onData(handler: OnData): void {
    this.deliver = handler
  }
  cork(write: () => void): void {
    write()
  }
  getRemoteAddressAsText(): ArrayBuffer {
    return new ArrayBuffer()
  }
}

const network = () => "192.0.2.0/24"

const request = {
  method: "POST",
  path: "/",
  query: "",
  headers: new RequestHeaders([]),
  remoteAddress: "192.0.2.1"
}

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

/** A server with this much room for unfinished bodies, whose clock the test moves. */
const world = (bodiesBytesMax = 1_000_000, turn?: SpillSettings["turn"]) => {
  const clock = { nowMs: 0 }
  const errors: Array<unknown> = []
  const limits = {
    totalBytesMax: bodiesBytesMax,
    networkBytesMax: bodiesBytesMax,
    deadlines: [{ fromShare: 0, ms: 20_000 }]
  }
  const bodies = new BodyBudget(limits, () => clock.nowMs)
  const spills = new SpillFolder({ path: tmpdir(), turn })
  const shared: Shared = {
    statusLines: statusLines("*"),
    bodies,
    unread: new UnreadBudget(),
    networkOf: network,
    spills,
    packetEnd: new PacketEnd(),
    onError: (error) => {
      errors.push(error)
    },
    streams: new Set(),
    drainers: new Set(),
    inFlight: 0,
    draining: false,
    turnBytes: 0,
    settled: undefined
  }
  const open = (declaredBytes = 0) => {
    const connection = new Connection()
    const exchange = new Exchange(connection, shared, request, { declaredBytes, isLast: false })
    return { connection, exchange }
  }
  return { bodies, clock, errors, open, shared }
}

it("calls back at the end of a turn, also behind a callback that throws", () => {
  vi.useFakeTimers({ toFake: ["setImmediate"] })
  try {
    const end = new PacketEnd()
    const called: Array<number> = []
    const callbacks = [() => called.push(1), () => {
      throw new Error("a defect")
    }, () => called.push(2)]
    for (const callback of callbacks) end.call(callback)
    expect(called).toEqual([])
    expect(() => vi.runAllTimers()).toThrow("a defect")
    expect(called).toEqual([1])
    vi.runAllTimers()
    expect(called).toEqual([1, 2])
  } finally {
    vi.useRealTimers()
  }
})

describe("an exchange", () => {
  it("answers with kept fields, its own ones, and those of any status", () => {
    const { open } = world()
    const kept = new KeptFields([["Link", "</a>; rel=b"]])
    const heads = [false, true, true, false].map((isGuarded) => {
      const { connection, exchange } = open()
      if (isGuarded) {
        exchange.guard()
        exchange.also([["RateLimit", "x"]])
      }
      exchange.reply({ status: 202, headers: [["Location", "/c"]], kept })
      return connection.head.split("\r\n")
    })
    const [first = [], guarded = []] = heads
    expect(heads).toEqual([first, guarded, guarded, first])
    const own = ["Link: </a>; rel=b", `Content-Security-Policy: ${documentPolicy}`, "Location: /c"]
    expect(first).toEqual(expect.arrayContaining([...own, "Access-Control-Allow-Origin: *"]))
    expect(guarded).toEqual(expect.arrayContaining([...own, "RateLimit: x"]))
    expect(guarded.join()).not.toContain("Access-Control-Allow-Origin")
    expect([first[0], guarded[0]]).toEqual(["202 Accepted", "202 Accepted"])
  })

  it("answers nothing if a field beside the kept ones could begin another one", () => {
    const { connection, exchange } = world().open()
    const headers = [["Location", "/c\r\nX: y"]] as const
    expect(() => exchange.reply({ status: 202, headers, kept: new KeptFields([]) })).toThrow()
    expect([connection.head, connection.ended, exchange.answered]).toEqual(["", [], false])
  })

  it("waits for the next turn only behind the answers of its own turn", async () => {
    const { open } = world()
    const answer = (bytes: number): Connection => {
      const { connection, exchange } = open()
      exchange.reply({ status: 200, headers: [], body: "a".repeat(bytes) })
      return connection
    }
    for (let turn = 0; turn < 3; turn += 1) {
      expect(answer(turnBytesMax - 1).ended).toHaveLength(1)
      await nextTurn()
    }
    expect(answer(turnBytesMax).ended).toHaveLength(1)
    expect(answer(1).ended).toHaveLength(1)
    const waiting = answer(1)
    expect(waiting.ended).toHaveLength(0)
    await nextTurn()
    expect(waiting.ended).toHaveLength(1)
  })

  /** Begins to read a document of this many bytes, -1: chunked, and lists what is passed. */
  const reading = (declaredBytes: number) => {
    const { connection, exchange } = world().open(declaredBytes)
    const passed: Array<number | string> = []
    exchange.bytes(1_000, network, (body) => {
      passed.push(body instanceof Uint8Array ? body.length : body._tag)
    })
    return { connection, exchange, passed }
  }

  it("passes a document when all packets of the turn have been read", async () => {
    for (const declaredBytes of [3, -1, 0]) {
      const { connection, passed } = reading(declaredBytes)
      connection.deliver(new ArrayBuffer(Math.abs(declaredBytes)), true)
      expect(passed).toEqual([])
      await nextTurn()
      expect(passed).toEqual([Math.abs(declaredBytes)])
    }
  })

  it("passes a whole document whose client left in the same turn", async () => {
    const { connection, passed } = reading(4)
    connection.deliver(new ArrayBuffer(1), false)
    connection.deliver(new ArrayBuffer(3), true)
    connection.leave()
    await nextTurn()
    expect(passed).toEqual([4])
  })

  it("passes no chunked document behind which the parser refused something", async () => {
    const { connection, passed } = reading(-1)
    connection.deliver(new ArrayBuffer(1), true)
    connection.leave()
    expect(passed).toEqual(["Aborted"])
    await nextTurn()
    expect(passed).toEqual(["Aborted"])
  })

  it("passes no document of a request that was answered in the same turn", async () => {
    const { connection, exchange, passed } = reading(4)
    connection.deliver(new ArrayBuffer(4), true)
    exchange.reply({ status: 401, headers: [], body: "who?" })
    await nextTurn()
    expect([passed, connection.ended]).toEqual([["Aborted"], ["who?"]])
  })

  it("reads the next request after an upload that was refused when it was complete", async () => {
    const size = 1_000
    const { open } = world(heldUploadBytes + size)
    const { connection, exchange } = open(size)
    const upload = exchange.stream(size, network)
    connection.deliver(new ArrayBuffer(size), true)
    const read = async (): Promise<unknown> => {
      for await (const chunk of upload) void chunk
      return undefined
    }
    const error = await read().catch((failure: unknown) => failure)
    expect(error instanceof BodyError && error.fault._tag).toBe("NoRoom")
    exchange.reply({ status: 503, headers: [], body: "no room" })
    expect([connection.ended, connection.isPaused]).toEqual([["no room"], false])
    expect(connection.head).not.toContain("close")
  })

  it("reads nothing more after an upload that was refused before its end", async () => {
    const { open } = world(heldUploadBytes + 1_000)
    const { connection, exchange } = open(1_000)
    const upload = exchange.stream(1_000, network)
    connection.deliver(new ArrayBuffer(999), false)
    expect(upload.fault?._tag).toBe("NoRoom")
    exchange.reply({ status: 503, headers: [], body: "no room" })
    expect([connection.ended, connection.isPaused]).toEqual([["no room"], true])
    expect(connection.head).toContain("Connection: close")
  })

  it("leaves no file of a complete upload whose client has left", () => {
    const { open, shared } = world(100_000_000)
    const piece = 1024 * 1024
    const { connection, exchange } = open(3 * piece)
    const upload = exchange.stream(3 * piece, network)
    for (let n = 1; n <= 3; n++) connection.deliver(new ArrayBuffer(piece), n === 3)
    connection.leave()
    // Its reader may store it nevertheless.
    expect([shared.spills.size > 0, upload.destroyed]).toEqual([true, false])
    exchange.reply({ status: 401, headers: [], body: "who?" })
    expect([shared.spills.size, upload.destroyed]).toEqual([0, true])
  })

  it("leaves no file of an upload that was answered unread", () => {
    const { open, shared } = world(100_000_000)
    const piece = 1024 * 1024
    for (const isWhole of [false, true]) {
      const { connection, exchange } = open(4 * piece)
      const upload = exchange.stream(4 * piece, network)
      for (let n = 1; n <= 3; n++) connection.deliver(new ArrayBuffer(piece), false)
      if (isWhole) connection.deliver(new ArrayBuffer(piece), true)
      expect(shared.spills.size).toBeGreaterThan(0)
      exchange.reply({ status: 401, headers: [], body: "who?" })
      expect([shared.spills.size, upload.destroyed]).toEqual([0, true])
      // The rest is discarded: the native server does not report any more that the client leaves.
      if (!isWhole) connection.deliver(new ArrayBuffer(piece), true)
      expect([shared.spills.size, shared.bodies.bytes]).toEqual([0, 0])
    }
  })

  it("ends the connection of an upload that holds the event loop, and says so", async () => {
    const piece = 1024 * 1024
    const { errors, open, shared } = world(100_000_000, { bytesMax: 4 * piece, ms: 0 })
    const { connection, exchange } = open(100 * piece)
    const upload = exchange.stream(100 * piece, network)
    for (let n = 1; n <= 4; n++) connection.deliver(new ArrayBuffer(piece), false)
    expect([connection.isCut, shared.spills.size > 0, errors]).toEqual([false, true, []])
    connection.deliver(new ArrayBuffer(piece), false)
    expect([connection.isCut, shared.spills.size, shared.bodies.bytes]).toEqual([true, 0, 0])
    expect([upload.fault?._tag, shared.inFlight]).toEqual(["Aborted", 0])
    expect(String(errors)).toContain("5242880 bytes in one turn of the event loop")
    // An answered one is discarded: the native server knows it no more.
    const answered = open(100 * piece)
    answered.exchange.stream(100 * piece, network)
    answered.exchange.reply({ status: 401, headers: [], body: "who?" })
    for (let n = 1; n <= 9; n++) answered.connection.deliver(new ArrayBuffer(piece), false)
    expect([answered.connection.isCut, errors.length]).toEqual([false, 1])
  })

  it("that was answered before its document arrived takes no room for it", () => {
    const { bodies, clock, open } = world()
    const first = open(1_000)
    first.exchange.bytes(1_000, network, () => undefined)
    first.exchange.reply({ status: 401, headers: [], body: "who?" })
    // Both looks at a document that may be unfinished: when the next one begins, and at a sweep.
    const second = open(1_000)
    second.exchange.bytes(1_000, network, () => undefined)
    second.exchange.reply({ status: 401, headers: [], body: "who?" })
    bodies.sweep()
    expect(bodies.bytes).toBe(0)
    // Its first piece: the native server does not report any more that the client leaves.
    second.connection.deliver(new ArrayBuffer(10), false)
    expect(bodies.bytes).toBe(0)
    clock.nowMs += 20_000
    bodies.sweep()
    expect([first.connection.isPaused, second.connection.isPaused]).toEqual([false, false])
  })
})
