/** A client of a simulated cluster: it sends to nodes that may be down, or crash meanwhile. */
import type { Address, AskFailure, LogItem, Tagged } from "../../actor/index.ts"
import type { Computer } from "../time/index.ts"
import type { SimulatedCluster } from "./cluster.ts"
import type { NodeProcess } from "./node-process.ts"

/** A message of any kind of actor; also a literal, whose fields are not known here. */
export type AnyMessage = Tagged | (Tagged & { readonly [field: string]: unknown })

/** The outcome of a request: an answer, certainly not processed, or unknown. */
export type ClientAnswer<Reply> =
  | { readonly _tag: "Answered"; readonly reply: Reply }
  | { readonly _tag: "Failed"; readonly why: string }
  | { readonly _tag: "Unknown"; readonly why: string }

/** Receives the outcome of a request, once. */
export type SettleAnswer<Reply> = (answer: ClientAnswer<Reply>) => void

/** How long a client waits for an answer, ms. */
const patienceMs = 15_000
/** The longest way between a client and a node, ms. */
const wayMaxMs = 5

/** Failures after which certainly no actor decided on the message. */
const undecided = ["NoOwner", "Overloaded", "Quarantined", "UnknownMessage", "MessageTooLarge"]

const isDown = "the node is down"

export class ClusterClient<Node extends NodeProcess = NodeProcess> {
  /** Failures that running nodes returned. */
  readonly unanswered: Array<string> = []
  private readonly cluster: SimulatedCluster<Node>
  private readonly computer: Computer

  constructor(cluster: SimulatedCluster<Node>, name: string) {
    this.cluster = cluster
    this.computer = cluster.computer(name)
  }

  /** True time. */
  get nowMs(): number {
    return this.cluster.time.nowMs
  }

  /** Asks an actor through the node with this number. */
  ask(at: number, to: Address, message: AnyMessage): Promise<ClientAnswer<unknown>> {
    return this.send(
      at,
      (node, settle) =>
        node.ask(to, message, (failure: AskFailure | undefined, reply) => {
          if (failure === undefined) return settle({ _tag: "Answered", reply })
          const _tag = undecided.includes(failure._tag) ? "Failed" : "Unknown"
          settle({ _tag, why: failure._tag })
        })
    )
  }

  /** Reads the log of an actor through the node with this number. */
  read(at: number, of: Address): Promise<ClientAnswer<ReadonlyArray<LogItem>>> {
    return this.send(at, (node, settle) =>
      node.read(of, (items) =>
        settle(
          items === undefined
            ? { _tag: "Failed", why: "no answer" }
            : { _tag: "Answered", reply: items }
        )))
  }

  /** Waits until this true time. */
  until(atMs: number): Promise<void> {
    const { time } = this.cluster
    return new Promise((resolve) =>
      void time.on(this.computer, Math.max(0, atMs - time.nowMs), resolve)
    )
  }

  /** Sends a request over a slow network; `call` hands it to the node. */
  protected send<Reply>(
    at: number,
    call: (node: Node, settle: SettleAnswer<Reply>) => void
  ): Promise<ClientAnswer<Reply>> {
    const { nodes, time } = this.cluster
    const wayMs = (): number => 0.1 + time.random() * wayMaxMs
    return new Promise((resolve) => {
      const settle: SettleAnswer<Reply> = (answer) => {
        time.on(this.computer, wayMs(), () => resolve(answer))
        if (answer._tag !== "Answered" && answer.why !== isDown) this.unanswered.push(answer.why)
      }
      time.on(this.computer, patienceMs, () => resolve({ _tag: "Unknown", why: "no answer" }))
      time.later(wayMs(), () => {
        const node = nodes[at]
        const down = { _tag: "Failed", why: isDown } as const
        if (node === undefined || !node.alive) return settle(down)
        time.on(
          node.computer,
          0,
          () => node.isServing ? call(node, settle) : settle(down)
        )
      })
    })
  }
}
