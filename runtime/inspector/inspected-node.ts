/** A node with its inspector. */
import { once } from "node:events"
import type { Server } from "node:http"
import { type ActorNode, type ActorNodeOptions, startNode } from "../definition/index.ts"
import { observedStore } from "./inspected-store.ts"
import { Recorder } from "../recording/index.ts"
import { inspectorServer } from "./server.ts"

const defaultPort = 8090

/** Where the page of an inspector listens, and by which names it is addressed. */
export interface InspectorOptions {
  /** 8090 by default; 0 takes any that is free. */
  readonly port?: number
  /**
   * The address to listen on; 127.0.0.1 by default. Whoever reaches another one sees all that the
   * actors store and receive.
   */
  readonly host?: string
  /** Names by which a request may address it, beside `localhost`, `127.0.0.1` and `[::1]`. */
  readonly hosts?: ReadonlyArray<string>
}

/** A running node, and where its inspector is. */
export interface NodeWithInspector extends ActorNode {
  /** Such as `http://127.0.0.1:8090/`. */
  readonly inspectorUrl: string
}

/** The inspector cannot listen; the node was stopped again. */
export class InspectorStartFailed extends Error {
  override readonly name = "InspectorStartFailed"
}

const listen = async (server: Server, port: number, host: string): Promise<void> => {
  try {
    server.listen(port, host)
    await once(server, "listening")
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new InspectorStartFailed(
      `the inspector cannot listen on ${host}:${port}: ${reason}. Give it another port, or end ` +
        "the program that has this one",
      { cause }
    )
  }
}

/** The name by which a request addresses a host; for all addresses of this machine, one of them. */
const nameOf = (host: string): string => {
  const reached = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host
  return reached.includes(":") ? `[${reached}]` : reached
}

const urlOf = (server: Server, host: string): string => {
  const address = server.address()
  const port = typeof address === "object" && address !== null ? address.port : 0
  return `http://${nameOf(host)}:${port}/`
}

/**
 * Starts a node as `startNode` does, and an inspector of it, for development: a page at
 * `inspectorUrl`, and JSON below `api/`. It shows the actors of the node with state, log, timer,
 * queue and last fault, the messages as they pass, and what recent commits have stored. It keeps
 * the last 1,000 messages and 2,000 commits in memory. Rejects with {@link InspectorStartFailed},
 * and with what `startNode` rejects with.
 */
export const startInspectedNode = async (
  options: Omit<ActorNodeOptions, "observer">,
  { host = "127.0.0.1", hosts = [], port = defaultPort }: InspectorOptions = {}
): Promise<NodeWithInspector> => {
  const recorder = new Recorder()
  const store = observedStore(options.store, recorder.onCommit)
  const node = await startNode({ ...options, store, observer: recorder })
  const source = { system: node.system, recorder, store: store.name }
  const server = inspectorServer(source, [nameOf(host), ...hosts])
  try {
    await listen(server, port, host)
  } catch (failure) {
    await node.stop()
    throw failure
  }
  return {
    ...node,
    inspectorUrl: urlOf(server, host),
    stop: () => {
      server.close()
      server.closeAllConnections()
      return node.stop()
    }
  }
}
