/** Relays to a receiver on loopback with durable statuses, compared with undici alone. */
import { atLeast, type Bench, type Line, median, type Row, thousands,
  withoutTarget } from "../line.ts"
import { authorization, openMailbox } from "../mailboxes.ts"
import { type Running, runScript } from "../process.ts"
import { countOf, until } from "../receiver.ts"
import { wrk } from "../wrk.ts"

const rounds = 3
const relays = 12_000
const documentBytes = 400
const pollMs = 5
const singlesSeconds = 5

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

const post = async (node: Running, path: string, body: string): Promise<Response> => {
  const answer = await fetch(node.origin + path, {
    method: "POST",
    headers: { Authorization: authorization(node.token), "Content-Type": "application/xml" },
    body
  })
  if (answer.status >= 300) throw new Error(`${path}: ${answer.status} ${await answer.text()}`)
  await answer.arrayBuffer()
  return answer
}

/** Runs a task until the receiver has this many more requests; returns requests per second. */
const rateOf = async (
  receiver: Running,
  many: number,
  begin: () => Promise<unknown>,
  end: () => Promise<void> = () => Promise.resolve()
): Promise<number> => {
  const before = await countOf(receiver)
  const startedMs = performance.now()
  const begun = begin()
  await until(receiver, before + many)
  await begun
  await end()
  return many * 1000 / (performance.now() - startedMs)
}

/** Waits until the sender sees every notification as ended. */
const settled = async (node: Running): Promise<void> => {
  for (;;) {
    const answer = await fetch(`${node.origin}/outgoing/admin?status=waiting&limit=1`, {
      headers: { Authorization: authorization(node.token), Accept: "application/xml" }
    })
    const text = await answer.text()
    if (answer.status === 200 && !text.includes("status=\"waiting\"")) return
    await pause(pollMs)
  }
}

let sent = 0

const queue = async (node: Running, receiver: Running, each: number, atOnce: number) => {
  const queueOne = async (): Promise<unknown> => {
    const n = sent++
    const to = Array.from({ length: each }, (_, at) => `<to>${receiver.origin}/inbox/${at}</to>`)
    const text = "x".repeat(documentBytes - 100)
    return post(
      node,
      "/outgoing/admin",
      `<notification>${to.join("")}<item><description>${n} ${text}</description>` +
        `<url>http://sender.test/${n}</url></item></notification>`
    )
  }
  let left = Math.floor(relays / each)
  const worker = async (): Promise<void> => {
    while (left-- > 0) await queueOne()
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
}

/**
 * Queues notifications to one recipient each by wrk, since a generator in this process would
 * measure itself; waits until the receiver has all of them.
 */
const singlesRate = async (node: Running, receiver: Running): Promise<number> => {
  const before = await countOf(receiver)
  const startedMs = performance.now()
  const { requests } = await wrk({
    origin: node.origin,
    script: "outgoing",
    args: [
      authorization(node.token),
      `singles${sent++}`,
      `${receiver.origin}/inbox/1`,
      String(documentBytes - 100)
    ],
    connections: 64,
    seconds: singlesSeconds
  })
  await until(receiver, before + requests)
  return requests * 1000 / (performance.now() - startedMs)
}

const alone = async (receiver: Running): Promise<number> => {
  const args = [receiver.origin, String(relays), String(documentBytes)]
  return relays * 1000 / Number(await runScript("poster.js", args))
}

const ratioLeast = 0.25
const rateLeast = 2_500

/** Without a target if the time includes accepting each relay by HTTP, which the peer lacks. */
const compared = async (
  what: string,
  receiver: Running,
  measure: () => Promise<number>,
  isTarget = true
): Promise<ReadonlyArray<Row>> => {
  const rates: Array<number> = []
  const peers: Array<number> = []
  for (let turn = 0; turn <= rounds; turn++) {
    const peer = await alone(receiver)
    const rate = await measure()
    if (turn === 0) continue
    rates.push(rate)
    peers.push(peer)
  }
  const detail = `${thousands(median(rates))} of ${thousands(median(peers))} a second`
  const ratio = median(rates.map((rate, at) => rate / (peers[at] ?? Number.NaN)))
  return [
    isTarget
      ? atLeast(`${what}, of undici alone posting the same`, ratio, ratioLeast, detail)
      : withoutTarget(
        `${what}, of undici alone posting the same`,
        `${ratio.toFixed(2)} (${detail})`
      ),
    {
      what: `${what}, a second`,
      measured: median(rates).toFixed(0),
      target: isTarget ? `≥ ${rateLeast}` : "none",
      met: isTarget ? median(rates) >= rateLeast : undefined
    }
  ]
}

/** Two receivers: one has work while the last requests of the other are in progress. */
const receivers = 2
const mailboxes = 4
const registrationsEach = 250
const waves = 10

const boxesOf = (receiver: number): ReadonlyArray<number> =>
  Array.from({ length: mailboxes }, (_, box) => box).filter((box) => box % receivers === receiver)

const registered = async (
  bench: Bench,
  node: Running,
  receiverProcesses: ReadonlyArray<Running>
): Promise<void> => {
  for (let box = 0; box < mailboxes; box++) {
    await openMailbox(node, `pushed${box}`)
    for (let n = 0; n < registrationsEach; n++) {
      const callback = `${receiverProcesses[box % receivers]?.origin ?? ""}/callback/${box}/${n}`
      const document = `<registration><callback>${callback}</callback></registration>`
      await post(node, `/mailboxes/pushed${box}/registrations`, document)
    }
  }
  bench.say(`${mailboxes * registrationsEach} registrations`)
  for (let box = 0; box < mailboxes; box++) {
    for (;;) {
      const answer = await fetch(`${node.origin}/mailboxes/pushed${box}/registrations?limit=1000`, {
        headers: { Authorization: authorization(node.token), Accept: "application/xml" }
      })
      if (!(await answer.text()).includes("unverified")) break
      await pause(100)
    }
  }
}

/** Deposits into each of a receiver's mailboxes; the next wave starts when all pushes arrived. */
const wavesTo = async (
  node: Running,
  receiver: Running,
  boxes: ReadonlyArray<number>
): Promise<void> => {
  const each = boxes.length * registrationsEach
  for (let wave = 0; wave < waves; wave++) {
    await rateOf(receiver, each, () =>
      Promise.all(boxes.map((box) => {
        const text = `${sent++} ${"x".repeat(documentBytes - 100)}`
        return post(
          node,
          `/mailboxes/pushed${box}`,
          `<notification><item><description>${text}</description>` +
            "<url>http://sender.test/m</url></item></notification>"
        )
      })))
  }
}

const pushWaves = async (
  node: Running,
  receiverProcesses: ReadonlyArray<Running>
): Promise<number> => {
  const startedMs = performance.now()
  await Promise.all(receiverProcesses.map((receiver, at) => wavesTo(node, receiver, boxesOf(at))))
  return mailboxes * registrationsEach * waves * 1000 / (performance.now() - startedMs)
}

const env = { OUTBOUND_ALLOW: "127.0.0.0/8" }

export const relaying: Line = {
  name: "relays",
  run: async (bench) => {
    const receiver = await bench.peer()
    const node = await bench.serve(bench.folder("relays"), { env })
    const rows = [
      ...await compared(
        "relays of notifications to 100 recipients each",
        receiver,
        () => rateOf(receiver, relays, () => queue(node, receiver, 100, 4), () => settled(node))
      ),
      ...await compared(
        "notifications to one recipient each, accepted (A5) and relayed",
        receiver,
        () => singlesRate(node, receiver),
        false
      )
    ]
    await node.stop()
    await receiver.stop()
    return rows
  }
}

export const pushes: Line = {
  name: "pushes",
  run: async (bench) => {
    const receiverProcesses = [await bench.peer(), await bench.peer()]
    const [first] = receiverProcesses
    if (first === undefined) throw new Error("there is no receiver")
    const node = await bench.serve(bench.folder("pushes"), { env })
    await registered(bench, node, receiverProcesses)
    const what = `pushes to ${mailboxes * registrationsEach} registrations, a notification each`
    const rows = await compared(what, first, () => pushWaves(node, receiverProcesses))
    await node.stop()
    await Promise.all(receiverProcesses.map((receiver) => receiver.stop()))
    return rows
  }
}
