/**
 * The messages of the transport on NATS subjects, each with its headers and a signature. The header
 * `Restante-Auth: <time> <code>` has the time of sending, in ms since the epoch, and the code of
 * these lines, each with its line feed, and of the body: the kind, the subject, the reply subject,
 * the time, and the headers `Restante-Mark`, `Restante-Node`, `Restante-Tenure`, `traceparent`.
 *
 * What is missing is an empty line. The reply subject counts only if it is an inbox of a node:
 * other clients cannot always choose theirs, and nodes recognize repeated messages of nodes by it.
 */
import type { Msg, NatsConnection } from "@nats-io/transport-node"
import { Schema } from "effect"
import { envelopeAgeMaxMs, envelopeSkewMs } from "../../limits.ts"
import { isNodeInbox, rawHeaders } from "../connection/index.ts"
import type { EnvelopeAuthenticator } from "./envelope-authenticator.ts"

/** What a message is for. A signature counts for one kind alone. */
export type EnvelopeKind = "ask" | "answer" | "change" | "inquiry"

export type MessageMark =
  | "answered"
  | "deciding"
  | "grant-request"
  | "granted"
  | "moved"
  | "refused"
  | "resent"
  | "undecided"

/** The headers of an envelope, and where its answer goes. */
export interface EnvelopeFields {
  readonly reply?: string
  readonly mark?: MessageMark
  /** The sending node; the name is new at each start. */
  readonly node?: string
  readonly tenure?: string
  /** The W3C trace context. */
  readonly trace?: string
}

/** What the signature of a message says. */
export interface EnvelopeSignature {
  /** When the sender sent it, by its own clock, ms since the epoch. */
  readonly sentAtMs: number
  /** Different for each message. */
  readonly code: string
}

/** Whether a message was sent a short time ago, by the clock of this node. */
export const isFresh = ({ sentAtMs }: EnvelopeSignature): boolean => {
  const aheadMs = sentAtMs - Date.now()
  return aheadMs <= envelopeSkewMs && aheadMs > -envelopeAgeMaxMs
}

/** The envelope of a client is not signed, too old, or was received before. */
export class EnvelopeRefused extends Schema.TaggedError<EnvelopeRefused>()("EnvelopeRefused", {
  key: Schema.String,
  detail: Schema.String
}) {}

/** Of a message of the client library, or of a simulated network. */
interface Headers {
  readonly get: (name: string) => string
}

const authHeader = "Restante-Auth"

const markHeader = "Restante-Mark"

const nodeHeader = "Restante-Node"

const tenureHeader = "Restante-Tenure"

const traceHeader = "traceparent"

const headerNames = [markHeader, nodeHeader, tenureHeader, traceHeader] as const

export const isMarked = (mark: MessageMark, headers: Headers | undefined): boolean =>
  headers !== undefined && headers.get(markHeader) === mark

/** Whether the message has any mark. */
export const hasMark = (headers: Headers | undefined): boolean =>
  headers !== undefined && headers.get(markHeader) !== ""

const fieldOf = (headers: Headers | undefined, name: string): string | undefined => {
  const value = headers?.get(name) ?? ""
  return value === "" ? undefined : value
}

export const nodeOf = (headers: Headers | undefined): string | undefined =>
  fieldOf(headers, nodeHeader)

export const traceOf = (headers: Headers | undefined): string | undefined =>
  fieldOf(headers, traceHeader)

/** The text of a tenure, which `message-grants.ts` reads and writes. */
export const tenureTextOf = (headers: Headers | undefined): string | undefined =>
  fieldOf(headers, tenureHeader)

/** The signed lines of an envelope. `values` are those of `headerNames`. */
const headOf = (
  kind: EnvelopeKind,
  subject: string,
  reply: string | undefined,
  time: string,
  values: ReadonlyArray<string | undefined>
): string => {
  const inbox = isNodeInbox(reply) ? reply ?? "" : ""
  return [kind, subject, inbox, time, ...values.map((value) => value ?? ""), ""].join("\n")
}

/** Sends and checks envelopes over one connection. */
export class Envelopes {
  private readonly nc: NatsConnection
  private readonly authenticator: EnvelopeAuthenticator
  private readonly onForged: (subject: string) => void

  /** `onForged`: a message without a valid signature came for this subject. */
  constructor(
    nc: NatsConnection,
    authenticator: EnvelopeAuthenticator,
    onForged: (subject: string) => void
  ) {
    this.nc = nc
    this.authenticator = authenticator
    this.onForged = onForged
  }

  /** Signs and publishes. Throws while the connection closes. */
  publish(
    kind: EnvelopeKind,
    subject: string,
    data: Uint8Array | string,
    fields: EnvelopeFields = {}
  ): void {
    const { mark, node, reply, tenure, trace } = fields
    const body = typeof data === "string" ? Buffer.from(data) : data
    const values = [mark, node, tenure, trace]
    let lines = ""
    for (const [at, name] of headerNames.entries()) {
      if (values[at] !== undefined) lines += `${name}: ${values[at]}\r\n`
    }
    const time = String(Date.now())
    const code = this.authenticator.sign(headOf(kind, subject, reply, time, values), body)
    const headers = rawHeaders(`NATS/1.0\r\n${lines}${authHeader}: ${time} ${code}\r\n\r\n`)
    this.nc.publish(subject, body, reply === undefined ? { headers } : { headers, reply })
  }

  /** The valid signature of a message; undefined for any other message. */
  receive(kind: EnvelopeKind, message: Msg): EnvelopeSignature | undefined {
    const { data, headers, reply, subject } = message
    const [time = "", code = ""] = (headers?.get(authHeader) ?? "").split(" ")
    const values = headerNames.map((name) => headers?.get(name))
    const isSigned = /^\d{1,15}$/.test(time) &&
      this.authenticator.isSigned(headOf(kind, subject, reply, time, values), data, code)
    if (isSigned) return { sentAtMs: Number(time), code }
    this.onForged(subject)
    return undefined
  }
}
