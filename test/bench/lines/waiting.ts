/** A million waiting notifications, and a hundred thousand that are due for a dead origin. */
import { createServer, type Server, type Socket } from "node:net"
import { atMost, type Bench, type Line, median } from "../line.ts"
import { authorization } from "../mailboxes.ts"
import { type Running, runScript } from "../process.ts"

const waiting = 1_000_000
const dueForDead = 100_000
const anHourMs = 3_600_000
const settleMs = 20_000
const probes = 10
const probeWithinMs = 60_000

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** A listener that accepts connections and never responds. */
const deadOrigin = async (): Promise<{ readonly origin: string; readonly close: () => void }> => {
  const sockets = new Set<Socket>()
  const server: Server = createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => undefined).once("close", () => sockets.delete(socket)).resume()
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const at = server.address()
  const port = typeof at === "object" ? at?.port ?? 0 : 0
  return {
    origin: `http://127.0.0.1:${port}`,
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  }
}

let sent = 0

/** Time from A5 until the sender sees `success`, in ms. */
const delivered = async (node: Running, receiver: Running): Promise<number> => {
  const startedMs = performance.now()
  const headers = { Authorization: authorization(node.token), Accept: "application/xml" }
  const answer = await fetch(`${node.origin}/outgoing/admin`, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/xml" },
    body: `<notification><to>${receiver.origin}/inbox/${sent}</to><item><description>` +
      `${sent++}</description><url>http://sender.test/m</url></item></notification>`
  })
  const text = await answer.text()
  const location = answer.headers.get("location")
  if (answer.status !== 202 || location === null) throw new Error(`${answer.status}: ${text}`)
  while (performance.now() - startedMs < probeWithinMs) {
    const response = await fetch(node.origin + new URL(location, node.origin).pathname, { headers })
    if ((await response.text()).includes("status=\"success\"")) return performance.now() - startedMs
    await pause(5)
  }
  throw new Error("a notification to a healthy receiver was not delivered in time")
}

const env = { OUTBOUND_ALLOW: "127.0.0.0/8" }

const filled = async (bench: Bench, folder: string, args: ReadonlyArray<string>) => {
  const startedMs = performance.now()
  await runScript("waiting.js", [folder, ...args])
  bench.say(`${args[0]} notifications stored in ${Math.round(performance.now() - startedMs)} ms`)
}

/** Starts the node with waiting notifications; returns the time of its first delivery. */
const startWith = async (bench: Bench, folder: string, receiver: Running) => {
  const startedMs = performance.now()
  const node = await bench.serve(folder, { env })
  await delivered(node, receiver)
  const firstMs = performance.now() - startedMs
  await pause(settleMs)
  return { node, firstMs, memory: node.memory() }
}

export const waitingMillion: Line = {
  name: "waiting",
  run: async (bench) => {
    const receiver = await bench.peer()
    const dead = await deadOrigin()
    const folder = bench.folder("waiting")
    await filled(bench, folder, [String(waiting), `${dead.origin}/inbox`, String(anHourMs)])
    const quiet = await startWith(bench, folder, receiver)
    await quiet.node.stop()
    await filled(bench, folder, [String(dueForDead), `${dead.origin}/inbox`, "0"])
    const node = await bench.serve(folder, { env })
    const times: Array<number> = []
    for (let probe = 0; probe < probes; probe++) {
      times.push(await delivered(node, receiver))
      await pause(1_000)
    }
    await pause(settleMs)
    const busy = node.memory()
    await node.stop("SIGKILL")
    await receiver.stop()
    dead.close()
    const many = `${waiting.toLocaleString("en")} waiting notifications`
    const due = `${dueForDead.toLocaleString("en")} more due for a dead origin`
    return [
      atMost(`start with ${many}, to the first A5 delivered`, quiet.firstMs / 1000, 5, "s"),
      atMost("resident memory with these, settled", quiet.memory.resident, 300, "MB"),
      atMost(
        `with ${due}: from A5 to success at a healthy receiver`,
        median(times) / 1000,
        1,
        "s",
        `median of ${probes}, worst ${(Math.max(...times) / 1000).toFixed(2)} s`
      ),
      {
        what: "resident memory with all of these",
        measured: `${busy.resident.toFixed(0)} MB (peak ${busy.peak.toFixed(0)} MB)`,
        target: "none",
        met: undefined
      }
    ]
  }
}
