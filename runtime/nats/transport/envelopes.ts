/**
 * The messages of the transport on NATS subjects, each with its headers and a signature. The header
 * `Restante-Auth: <time> <code>` has the time of sending, in ms since the epoch, and the code of
 * these lines, each with its line feed, and of the body: the kind, the subject, the reply subject,
 * the time, and the headers `Restante-Mark`, `Restante-Node`, `Restante-Tenure`, `traceparent`.
 *
 * What is missing is an empty line. The reply subject counts only if it is an inbox of a node:
 * other clients cannot always choose theirs, and nodes recognize repeated messages of nodes by it.
 *
 * Messages of one turn of the event loop for one node go as one, a bundle, with one signature. Its
 * body begins with a line of JSON, `[subject, length, fields]` for each message; the bodies follow.
 * Lengths are in UTF-16 units, so that a bundle is encoded and decoded once as a whole.
 * An answer has the last token of its subject there.
 */
import type { Msg } from "@nats-io/transport-node"
import { Schema } from "effect"
import { envelopeAgeMaxMs, envelopeSkewMs } from "../../limits.ts"
import { isNodeInbox, type TurnWrites } from "../connection/index.ts"
import type { EnvelopeAuthenticator } from "./envelope-authenticator.ts"

/** What a message is for. A signature counts for one kind alone. */
export type EnvelopeKind =
  | "ask"
  | "asks"
  | "answer"
  | "answers"
  | "change"
  | "inquiry"
  | "ping"

export type MessageMark =
  | "answered"
  | "deciding"
  | "elsewhere"
  | "grant-request"
  | "granted"
  | "moved"
  | "refused"
  | "resent"
  | "undecided"

/** The headers of an envelope, and where its answer goes. */
export interface EnvelopeFields {
  readonly reply?: string | undefined
  readonly mark?: MessageMark | undefined
  /** The sending node; the name is new at each start. */
  readonly node?: string | undefined
  /** A tenure, which `message-grants.ts` reads and writes. */
  readonly tenure?: string | undefined
  /** The W3C trace context. */
  readonly trace?: string | undefined
}

/** What the signature of a message says. */
export interface EnvelopeSignature {
  /** When the sender sent it, by its own clock, ms since the epoch. */
  readonly sentAtMs: number
  /** Different for each message. */
  readonly code: string
}

/** A received message with a valid signature. */
export interface Envelope extends EnvelopeFields, EnvelopeSignature {
  readonly subject: string
  readonly text: string
  /** It came in a bundle: its sender takes answers in bundles too. */
  readonly isBundled: boolean
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

const authHeader = "Restante-Auth"

const markHeader = "Restante-Mark"

const nodeHeader = "Restante-Node"

const tenureHeader = "Restante-Tenure"

const traceHeader = "traceparent"

const textOf = ({ data }: Msg): string =>
  Buffer.from(data.buffer, data.byteOffset, data.length).toString()

const given = (value: string | undefined): string | undefined => value === "" ? undefined : value

/** The node that a message names as its sender; the signature is not checked. */
export const nodeNamedBy = ({ headers }: Msg): string | undefined => headers?.get(nodeHeader)

/** The fields of a received message. */
const fieldsOf = ({ headers, reply }: Msg): EnvelopeFields => ({
  reply,
  // Whoever receives a mark of a later program does nothing.
  mark: given(headers?.get(markHeader)) as MessageMark | undefined,
  node: given(headers?.get(nodeHeader)),
  tenure: given(headers?.get(tenureHeader)),
  trace: given(headers?.get(traceHeader))
})

/** A message of a bundle. */
export interface BundledMessage {
  readonly subject: string
  readonly fields: EnvelopeFields
  readonly text: string
}

type BundleEntry = readonly [subject: string, length: number, fields: EnvelopeFields]

const encodeBundle = (messages: ReadonlyArray<BundledMessage>): string => {
  const entries = messages.map(({ fields, subject, text }): BundleEntry => [
    subject,
    text.length,
    fields
  ])
  return `${JSON.stringify(entries)}\n${messages.map(({ text }) => text).join("")}`
}

/** The messages of a bundle, which a node of this cluster has signed; throws if it is another's. */
const decodeBundle = (bundle: string): ReadonlyArray<BundledMessage> => {
  let at = bundle.indexOf("\n") + 1
  // A node wrote it: the signature was checked.
  const entries = JSON.parse(bundle.slice(0, at)) as ReadonlyArray<BundleEntry>
  return entries.map(([subject, length, fields]) => {
    const text = bundle.slice(at, at + length)
    at += length
    return { subject, fields, text }
  })
}

/** A literal, since copying parsed fields by a spread takes as long as checking a signature. */
const envelopeOf = (
  { fields: { mark, node, reply, tenure, trace }, subject, text }: BundledMessage,
  { code, sentAtMs }: EnvelopeSignature,
  isBundled: boolean
): Envelope => ({ subject, text, reply, mark, node, tenure, trace, sentAtMs, code, isBundled })

/** The signed lines of an envelope. */
const headOf = (
  kind: EnvelopeKind,
  subject: string,
  time: string,
  { mark, node = "", reply, tenure = "", trace = "" }: EnvelopeFields
): string => {
  const inbox = isNodeInbox(reply) ? reply ?? "" : ""
  return `${kind}\n${subject}\n${inbox}\n${time}\n${mark ?? ""}\n${node}\n${tenure}\n${trace}\n`
}

const headerLine = (name: string, value: string | undefined): string =>
  value === undefined ? "" : `${name}: ${value}\r\n`

/** Sends and checks envelopes over one connection. */
export class Envelopes {
  private readonly writes: Pick<TurnWrites, "publish">
  private readonly authenticator: EnvelopeAuthenticator
  private readonly onForged: (subject: string) => void

  /** `onForged`: a message without a valid signature came for this subject. */
  constructor(
    writes: Pick<TurnWrites, "publish">,
    authenticator: EnvelopeAuthenticator,
    onForged: (subject: string) => void
  ) {
    this.writes = writes
    this.authenticator = authenticator
    this.onForged = onForged
  }

  /** Signs and publishes. Throws while the connection closes. */
  publish(
    kind: EnvelopeKind,
    subject: string,
    text: string,
    fields: EnvelopeFields = {}
  ): void {
    const { mark, node, reply, tenure, trace } = fields
    const body = Buffer.from(text)
    const lines = headerLine(markHeader, mark) + headerLine(nodeHeader, node) +
      headerLine(tenureHeader, tenure) + headerLine(traceHeader, trace)
    const time = String(Date.now())
    const code = this.authenticator.sign(headOf(kind, subject, time, fields), body)
    const headersText = `NATS/1.0\r\n${lines}${authHeader}: ${time} ${code}\r\n\r\n`
    this.writes.publish(
      subject,
      body,
      reply === undefined ? { headersText } : { headersText, reply }
    )
  }

  /** Signs and publishes several messages as one; throws as `publish`. */
  publishBundle(
    kind: "asks" | "answers",
    subject: string,
    messages: ReadonlyArray<BundledMessage>,
    fields: EnvelopeFields = {}
  ): void {
    this.publish(kind, subject, encodeBundle(messages), fields)
  }

  /** A message with a valid signature; undefined for any other message. */
  receive(kind: EnvelopeKind, message: Msg): Envelope | undefined {
    const { data, headers, subject } = message
    const [time = "", code = ""] = (headers?.get(authHeader) ?? "").split(" ")
    const fields = fieldsOf(message)
    const isSigned = /^\d{1,15}$/.test(time) &&
      this.authenticator.isSigned(headOf(kind, subject, time, fields), data, code)
    if (!isSigned) {
      this.onForged(subject)
      return undefined
    }
    const signature = { sentAtMs: Number(time), code }
    return envelopeOf({ subject, fields, text: textOf(message) }, signature, false)
  }

  /** The messages of a bundle with a valid signature; none for any other message. */
  receiveBundle(kind: "asks" | "answers", message: Msg): ReadonlyArray<Envelope> {
    const bundle = this.receive(kind, message)
    if (bundle === undefined) return []
    const { code, sentAtMs } = bundle
    try {
      return decodeBundle(bundle.text).map((one, at) =>
        envelopeOf(one, { sentAtMs, code: `${code} ${at}` }, true)
      )
    } catch {
      // A program with the key wrote it in another form. The client would stop reading.
      return []
    }
  }
}
