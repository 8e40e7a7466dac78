/**
 * A client's connection to a simulated JetStream. Above it, requests, time limits, retries and read
 * barriers are the real ones.
 */
import type { Msg, NatsConnection, PublishOptions, Status } from "@nats-io/transport-node"
import { type NatsApi, streamAccess } from "../../../runtime/nats/connection/connection.ts"
import { type ApiCall, callOf, type Reply } from "./server.ts"
import { fieldOf, type Published } from "./stream.ts"

type Callback = (error: null, message: Msg) => void

/** Carries what the connection sends; it answers with {@link SimulatedConnection.deliver}. */
export interface Route {
  /** A message of a stream, or all messages of a batch. */
  readonly write: (messages: ReadonlyArray<Published>, reply: string) => void
  readonly call: (call: ApiCall, reply: string) => void
}

export interface Servers {
  /** Most bytes of the data and headers of one message. */
  readonly maxPayload: number
  readonly replicas: number
}

const headersOf = (options: PublishOptions | undefined): string => {
  // The store encodes its headers itself.
  const encoded = options?.headers as { readonly encode?: () => Uint8Array } | undefined
  return encoded?.encode === undefined ? "" : Buffer.from(encoded.encode()).toString("latin1")
}

export class SimulatedConnection {
  readonly info: { readonly max_payload: number; readonly cluster: string }
  private readonly route: Route
  private readonly replicas: number
  private readonly inboxes = new Map<string, Callback>()
  /** By id: the members of each batch so far. */
  private readonly batches = new Map<string, Array<Published>>()

  constructor({ maxPayload, replicas }: Servers, route: Route) {
    this.info = { max_payload: maxPayload, cluster: replicas > 1 ? "simulated" : "" }
    this.replicas = replicas
    this.route = route
  }

  isClosed(): boolean {
    return false
  }

  closed(): Promise<void> {
    return new Promise(() => {})
  }

  /** Takes replies to an inbox: `<inbox>.*`. */
  subscribe(pattern: string, { callback }: { readonly callback: Callback }): void {
    this.inboxes.set(pattern.slice(0, -2), callback)
  }

  /** It never breaks: what is sent over a cut path arrives later. */
  async *status(): AsyncGenerator<Status> {
    await this.closed()
  }

  publish(subject: string, data: Uint8Array | string = "", options?: PublishOptions): void {
    const headers = headersOf(options)
    const bytes = Buffer.from(data)
    const reply = options?.reply ?? ""
    const call = callOf(subject, bytes)
    if (bytes.length + headers.length > this.info.max_payload) {
      throw new Error("'payload' max_payload size exceeded")
    }
    if (call !== undefined) return this.route.call(call, reply)
    const message = { subject, data: bytes, headers }
    const batch = fieldOf(headers, "Nats-Batch-Id")
    if (batch === undefined) return this.route.write([message], reply)
    const members = this.batches.get(batch) ?? []
    members.push(message)
    this.batches.set(batch, members)
    if (fieldOf(headers, "Nats-Batch-Commit") === undefined) return
    this.batches.delete(batch)
    this.route.write(members, reply)
  }

  /** A reply arrives at the client. */
  deliver(subject: string, { data, headers, status }: Reply): void {
    const callback = this.inboxes.get(subject.slice(0, subject.lastIndexOf(".")))
    const fields = {
      code: status,
      get: (name: string) => headers.get(name) ?? "",
      has: (name: string) => headers.has(name)
    }
    // Only the part of a message that is read of replies.
    const message = { subject, data, headers: fields, string: () => data.toString() }
    callback?.(null, message as unknown as Msg)
  }

  /** The real requests and read barriers on this connection. */
  api(name: string): NatsApi {
    // Only the part of a connection that requests use.
    const nc = this as unknown as NatsConnection
    // The store uses no client of JetStream: it calls the API itself.
    return streamAccess(nc, { name, replicas: this.replicas }) as NatsApi
  }
}
