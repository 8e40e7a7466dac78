/**
 * Requests in any number of segments. TCP may cut them anywhere; the answers must be those to the
 * same requests in one piece. What breaks off is not stored.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { headerBlockBytesMax } from "../../http/limits.ts"
import { expectStatus, linkOf, listMailbox, type Mailbox, notification, openMailbox,
  send } from "../e2e/client.ts"
import { cleanUp, type Service, start, within } from "../e2e/process.ts"
import { head, openRaw } from "../e2e/raw.ts"
import { Random } from "../faults/random.ts"
import { answered, answersIn, hasRead, readBarrier, type WireAnswer } from "./answers.ts"

const answersWithinMs = 120_000
/** More unfinished bodies at once would have shorter deadlines, and a busy machine miss them. */
const brokenAtOnce = 50
/** Payload of a segment on most networks. */
const segmentBytes = 1_400
/** Every US-ASCII character that a field name may have (RFC 9110 §5.6.2). */
const tokenCharacters = "!#$%&'*+-.^_`|~0123456789"
  + "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

let service: Service
let mailbox: Mailbox

beforeAll(async () => {
  service = await start()
  mailbox = await openMailbox(service.url, "target")
})
afterAll(async () => {
  await service.kill()
  cleanUp()
})

/** A request in pieces, with the number of answers that it gets. */
interface Cut {
  readonly name: string
  readonly pieces: ReadonlyArray<string>
  readonly answers?: number
}

/** A request; the number makes its document unique, and changes no length. */
type Request = (n: number) => string

const atPlaces = (bytes: string, places: ReadonlyArray<number>): ReadonlyArray<string> =>
  [0, ...places].map((place, n) => bytes.slice(place, places[n] ?? bytes.length))

const segments = (bytes: string, length: number): ReadonlyArray<string> =>
  atPlaces(
    bytes,
    Array.from({ length: Math.ceil(bytes.length / length) - 1 }, (_, n) => (n + 1) * length)
  )

/**
 * The request whole, cut at every place, byte by byte, and in three pieces at random places; its
 * last `uncut` bytes come together.
 */
const cutsOf = (
  name: string,
  request: Request,
  random: Random,
  uncut = 1
): ReadonlyArray<Cut> => {
  const length = request(0).length - uncut + 1
  const inTwo = Array.from({ length: length - 1 }, (_, at) => [at + 1])
  const inThree = Array.from(
    { length: 30 },
    () => [random.below(length), random.below(length)].toSorted((a, b) => a - b)
  )
  const inMany = Array.from({ length: length - 1 }, (_, at) => at + 1)
  return [[], inMany, ...inTwo, ...inThree].map((places, n) => ({
    name: `${name} ${n}, cut after ${places.slice(0, 5).join(", ")}`,
    pieces: atPlaces(request(n), places)
  }))
}

/** Sends the first piece of each request, then the second of each, and so on. */
const sendInSteps = async (
  cuts: ReadonlyArray<Cut>
): Promise<ReadonlyMap<string, ReadonlyArray<WireAnswer>>> => {
  const all = await Promise.all(cuts.map(async (cut) => {
    const connection = await openRaw(service.port)
    connection.socket.setNoDelay(true)
    return { cut, connection }
  }))
  const barrier = await readBarrier(service.port)
  const steps = Math.max(...cuts.map(({ pieces }) => pieces.length))
  for (let step = 0; step < steps; step += 1) {
    for (const { connection, cut } of all) {
      const piece = cut.pieces[step] ?? ""
      if (piece !== "") connection.socket.write(piece, "latin1")
    }
    await barrier.wait()
  }
  barrier.end()
  return new Map(
    await Promise.all(all.map(async ({ connection, cut }) => {
      await within(answersWithinMs, `${cut.name}: is answered`, answered(connection, cut.answers))
      const hasEnded = connection.socket.closed
      connection.socket.destroy()
      return [cut.name, answersIn(connection.received(), { hasEnded })] as const
    }))
  )
}

/** An answer without what differs from request to request. */
const normalized = ({ body, head, status }: WireAnswer): unknown => ({
  status,
  head: head.replaceAll(/\r\n(date|location|link): [^\r]*/gi, "\r\n$1"),
  body: body.replaceAll(/(href|received)="[^"]*"/g, "$1")
})

/** Fails unless each has one answer, with this status, and all of them are the same. */
const expectSameAnswer = (
  answers: ReadonlyMap<string, ReadonlyArray<WireAnswer>>,
  status: number
): void => {
  const [wanted] = [...answers.values()].flat()
  if (wanted === undefined) throw new Error("there is no answer")
  expect(wanted.status).toBe(status)
  for (const [name, all] of answers) {
    expect([name, ...all.map(normalized)]).toEqual([name, normalized(wanted)])
  }
}

const deposit = (fields: ReadonlyArray<string>, body: string): string =>
  head(`POST ${mailbox.path} HTTP/1.1`, "Host: a", "Content-Type: application/xml", ...fields)
  + body

const description = (kind: string, n: number): string => `${kind}-${String(n).padStart(4, "0")}`

const withLength = (n: number): string => {
  const body = notification(description("plain", n))
  return deposit([`Content-Length: ${body.length}`], body)
}

/** The document in chunks of 40 bytes. */
const inChunks = (n: number, kind = "chunked"): string => {
  const body = notification(description(kind, n))
  const chunks = segments(body, 40).map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`)
  return deposit(["Transfer-Encoding: chunked"], `${chunks.join("")}0\r\n\r\n`)
}

/** Publishes content; returns the path by which it can be changed. */
const published = async (): Promise<string> => {
  const answer = await send(service.url, "/content", { method: "POST", body: "first" })
  return linkOf(expectStatus(answer, 202), "edit")
}

const putTo = (path: string): string => head(`PUT ${path} HTTP/1.1`, "Host: a", "Content-Length: 6")

const get = (target: string, ...fields: ReadonlyArray<string>): string =>
  head(`GET ${target} HTTP/1.1`, "Host: a", ...fields)

const descriptions = async (): Promise<ReadonlyArray<string>> =>
  (await listMailbox(service.url, mailbox)).map(({ description }) => description).toSorted()

describe("a request in segments", () => {
  const random = new Random("cuts")

  const storedOf = async (kind: string): Promise<ReadonlyArray<string>> =>
    (await descriptions()).filter((text) => text.startsWith(kind))

  it.each([
    ["with a length", "plain", withLength, 1],
    // The line feed that ends the last chunk, and the empty line.
    ["in chunks", "chunked", (n: number) => inChunks(n), 3]
  ])("is answered and stored once: a deposit %s", async (name, kind, request, uncut) => {
    const cuts = cutsOf(name, request, random, uncut)
    expectSameAnswer(await sendInSteps(cuts), 202)
    expect(await storedOf(kind)).toEqual(cuts.map((_, n) => description(kind, n)))
  })

  it("is stored once: a deposit in chunks whose last, empty line comes late", async () => {
    const { length } = inChunks(0)
    const cuts = [[length - 2], [length - 1], [length - 2, length - 1]].map((places, n) => ({
      name: `cut after ${places}`,
      pieces: atPlaces(inChunks(n, "delayed"), places)
    }))
    // The answer and the end of the connection may meet that line on its way: none arrives then.
    await sendInSteps(cuts)
    await expect.poll(() => storedOf("delayed"), { timeout: answersWithinMs })
      .toEqual(cuts.map((_, n) => description("delayed", n)))
  })

  it("is answered: a PUT with a length", async () => {
    const { length } = putTo(await published())
    const paths: Array<string> = []
    // A network has room for three hundred uploads at once.
    while (paths.length < length + 100) {
      paths.push(...await Promise.all(Array.from({ length: 50 }, published)))
    }
    const cuts = cutsOf("PUT", (n) => `${putTo(paths[n] ?? "")}second`, random)
    expectSameAnswer(await sendInSteps(cuts), 204)
    const texts = await Promise.all(
      paths.slice(0, cuts.length).map(async (path) => (await send(service.url, path)).text)
    )
    expect(new Set(texts)).toEqual(new Set(["second"]))
  })

  it("is answered: a GET with a query", async () => {
    const target = `/problems/gone?${"name=value&".repeat(12)}`
    const request = () => get(target, "Accept: application/json", "X-Request_Id: 1")
    expectSameAnswer(await sendInSteps(cutsOf("GET", request, random)), 200)
  })

  it("is answered: a target of 3 kB in segments of 1,400 bytes, and of other lengths", async () => {
    const bytes = get(`/problems/gone?${"x".repeat(3_000)}`)
    const cuts = [bytes.length, segmentBytes, 536, 1_000, 3_020, 100].map((length) => ({
      name: `segments of ${length}`,
      pieces: segments(bytes, length)
    }))
    expectSameAnswer(await sendInSteps(cuts), 200)
  })

  it("is answered with each character that a field name may have", async () => {
    const one = [...tokenCharacters].map((character) => ({
      name: `a field name with ${character}`,
      bytes: get("/problems/gone", `X${character}Y: z`, `${character}: z`)
    }))
    const all = get("/problems/gone", ...[...tokenCharacters].map((one) => `X${one}Y: z`))
    const cuts = [...one, { name: "a field name with each", bytes: all }]
      .flatMap(({ bytes, name }) => [
        { name, pieces: [bytes] },
        { name: `${name}, cut within it`, pieces: atPlaces(bytes, [bytes.indexOf("X") + 1]) }
      ])
    expectSameAnswer(await sendInSteps(cuts), 200)
  })

  it.each([
    ["just fits", headerBlockBytesMax - 100, 200],
    ["is just too large", headerBlockBytesMax + 1, 431]
  ])("gets the same status when its header block %s", async (_, bytesTotal, status) => {
    const without = get("/problems/gone", "X: ").length
    const bytes = get("/problems/gone", `X: ${"x".repeat(bytesTotal - without)}`)
    const lengths = [bytesTotal, segmentBytes, 5_000, bytesTotal - 1, bytesTotal - 3]
    const answers = await sendInSteps(lengths.map((length) => ({
      name: `segments of ${length}`,
      pieces: segments(bytes, length)
    })))
    const statuses = [...answers].map(([name, all]) => [name, ...all.map(({ status }) => status)])
    expect(statuses).toEqual(lengths.map((length) => [`segments of ${length}`, status]))
  })

  it("is answered in order behind another one", async () => {
    const bytes = get("/livez") + get("/nowhere") + get("/problems/gone")
    const answers = await sendInSteps(
      cutsOf("three requests", () => bytes, random).map((cut) => ({ ...cut, answers: 3 }))
    )
    for (const [name, all] of answers) {
      expect([name, ...all.map(({ status }) => status)]).toEqual([name, 200, 404, 200])
    }
  })
})

describe("a request that breaks off", () => {
  /** Every part of the request with which its body is not complete. */
  const parts = (bytes: string): ReadonlyArray<string> => {
    // The size of the last chunk completes the body.
    const length = bytes.endsWith("0\r\n\r\n") ? bytes.length - 3 : bytes.length - 1
    return Array.from({ length }, (_, at) => bytes.slice(0, at + 1))
  }

  /** Sends each of them twice, ends one connection and resets the other; none is answered. */
  const breakOff = async (requests: ReadonlyArray<string>): Promise<void> => {
    const opened = await Promise.all(
      [...requests, ...requests].map(async (bytes) => {
        const connection = await openRaw(service.port)
        connection.socket.write(bytes, "latin1")
        return connection
      })
    )
    await hasRead(service.port)
    for (const [n, { socket }] of opened.entries()) {
      if (n < requests.length) socket.end()
      else socket.resetAndDestroy()
    }
    await Promise.all(opened.map(({ closed }) => within(answersWithinMs, "the end", closed)))
    const answered = opened.map(({ received }) => received()).filter((text) => text !== "")
    // An assertion would show that there is one, and not what it says.
    if (answered.length > 0) throw new Error(answered.join("\n"))
  }

  it("changes nothing, wherever it ends, by FIN or RST", async () => {
    const before = await descriptions()
    const path = await published()
    const requests = [withLength(9_000), inChunks(9_000), `${putTo(path)}second`].flatMap(parts)
    for (let at = 0; at < requests.length; at += brokenAtOnce) {
      await breakOff(requests.slice(at, at + brokenAtOnce))
    }
    await hasRead(service.port)
    expect(await descriptions()).toEqual(before)
    expect((await send(service.url, path)).text).toBe("first")
    expectSameAnswer(await sendInSteps([{ name: "a whole one", pieces: [withLength(9_001)] }]), 202)
    expect(await descriptions()).toHaveLength(before.length + 1)
  })
})
