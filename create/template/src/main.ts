/** The program: a node that runs the actors, and a server with the route to them. */
import { type ActorNode, type ActorNodeOptions, startNode } from "@restante/runtime"
import { once } from "node:events"
import { createServer } from "node:http"
import { counter } from "./actors/counter.ts"
import { route } from "./route.ts"
import { openStore } from "./store.ts"

const host = process.env["HOST"] ?? "127.0.0.1"
const port = Number(process.env["PORT"] ?? 8080)
const inspectorPort = Number(process.env["INSPECTOR_PORT"] ?? 8090)

/** `npm run dev` starts the inspector, too. */
const startInspected = async (options: ActorNodeOptions): Promise<ActorNode> => {
  const { startInspectedNode } = await import("@restante/runtime/inspector")
  const inspected = await startInspectedNode(options, { port: inspectorPort })
  process.stdout.write(`The inspector: ${inspected.inspectorUrl}\n`)
  return inspected
}

/** Starts both; the node stops again when the server cannot listen. */
const run = async (): Promise<void> => {
  const start = process.argv.includes("--inspector") ? startInspected : startNode
  const node = await start({ actors: [counter], store: openStore() })
  const server = createServer(route(node))
  try {
    server.listen(port, host)
    await once(server, "listening")
  } catch (cause) {
    await node.stop()
    throw new Error(`the server cannot listen: ${cause}. Set PORT to one that is free`, { cause })
  }
  process.stdout.write(`http://localhost:${port}/counters/visits\n`)

  // The server answers what it has accepted, and then the node stops.
  const stop = () => server.close(() => void node.stop())
  process.once("SIGINT", stop)
  process.once("SIGTERM", stop)
}

await run().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`)
  process.exit(1)
})
