/**
 * Signatures of webhooks: those of GitHub and others (`X-Hub-Signature-256`), Grafana
 * (`X-Grafana-Alerting-Signature`, with or without a time), Stripe (`Stripe-Signature`), and of
 * Standard Webhooks and Svix (`webhook-signature`, `svix-signature`).
 */
import { timingSafeEqual } from "node:crypto"
import { hubSignature, webhookHeaders } from "../../../../actors/index.ts"
import { webhookAgeMsMax } from "../../../limits.ts"
import type { RequestHeaders } from "../../../wire/index.ts"

/** A webhook with its signature, which is of the bytes as they came. */
export interface SignedBody {
  readonly headers: Pick<RequestHeaders, "get">
  readonly bytes: Uint8Array
}

/** Whether one of the given signatures is the expected one, in a time that does not tell which. */
const hasSignature = (given: ReadonlyArray<string>, expected: string): boolean => {
  const bytes = Buffer.from(expected)
  return given.map((one) => Buffer.from(one)).some((one) =>
    one.length === bytes.length && timingSafeEqual(one, bytes)
  )
}

/** Seconds since 1970. Whoever has recorded a webhook cannot send it again much later. */
const isRecent = (seconds: string, nowMs: number): boolean =>
  /^\d{1,12}$/.test(seconds) && Math.abs(Number(seconds) * 1000 - nowMs) <= webhookAgeMsMax

/** The hexadecimal HMAC-SHA256 of a body. */
const hmacOf = (secret: string, bytes: Uint8Array): string =>
  hubSignature(secret, bytes).slice("sha256=".length)

/** What is signed with a time: the body after it. */
const withTime = (seconds: string, separator: string, bytes: Uint8Array): Uint8Array =>
  Buffer.concat([Buffer.from(seconds + separator), bytes])

/**
 * Whether a body begins as what is signed with a time. A signature without a time must not be of
 * such a one: a recorded webhook would pass for ever, with its time as part of the body.
 */
const beginsWithTime = (bytes: Uint8Array): boolean =>
  /^\d{10,12}[.:]/.test(Buffer.from(bytes.subarray(0, 13)).toString("latin1"))

type Check = (body: SignedBody, secret: string, nowMs: number) => boolean

const isHubSigned: Check = ({ headers, bytes }, secret) =>
  !beginsWithTime(bytes) &&
  hasSignature([headers.get("x-hub-signature-256") ?? ""], hubSignature(secret, bytes))

/** The name of its documentation, and the one that its source has by default. */
const grafanaFields = ["x-grafana-alerting-signature", "x-grafana-alert-signature"]

/** The field of the time has no default: the recipe names this one. */
const grafanaTimeField = "x-grafana-alerting-timestamp"

const isGrafanaSigned: Check = ({ headers, bytes }, secret, nowMs) => {
  const given = grafanaFields.map((name) => headers.get(name) ?? "")
  const seconds = headers.get(grafanaTimeField) ?? undefined
  return seconds === undefined
    ? !beginsWithTime(bytes) && hasSignature(given, hmacOf(secret, bytes))
    : isRecent(seconds, nowMs) && hasSignature(given, hmacOf(secret, withTime(seconds, ":", bytes)))
}

/** `t=<seconds>,v1=<signature>`, with more of `v1` while a secret is rotated. */
const isStripeSigned: Check = ({ headers, bytes }, secret, nowMs) => {
  const parts = (headers.get("stripe-signature") ?? "").split(",").map((part) => part.trim())
  const valuesOf = (name: string) =>
    parts.filter((part) => part.startsWith(`${name}=`)).map((part) => part.slice(name.length + 1))
  const [seconds = ""] = valuesOf("t")
  return isRecent(seconds, nowMs) &&
    hasSignature(valuesOf("v1"), hmacOf(secret, withTime(seconds, ".", bytes)))
}

/**
 * A secret of Standard Webhooks. Of any other, base64 would leave a part, or nothing: whoever knows
 * that could sign by an empty key.
 */
const standardSecret = /^whsec_[A-Za-z0-9+/]{22,}={0,2}$/

/** The specification of Standard Webhooks, whose fields Svix names by its own prefix, too. */
const isStandardSigned =
  (prefix: "webhook" | "svix"): Check => ({ headers, bytes }, secret, nowMs) => {
    const [id = "", seconds = "", signatures = ""] = ["id", "timestamp", "signature"].map((name) =>
      headers.get(`${prefix}-${name}`)
    )
    if (!standardSecret.test(secret) || id === "" || !isRecent(seconds, nowMs)) return false
    const { "webhook-signature": expected = "" } = webhookHeaders(
      [secret],
      id,
      Number(seconds),
      bytes
    )
    return hasSignature(signatures.split(" "), expected)
  }

const checks: ReadonlyArray<Check> = [
  isHubSigned,
  isGrafanaSigned,
  isStripeSigned,
  isStandardSigned("webhook"),
  isStandardSigned("svix")
]

/** Whether a webhook has a right signature of one of the known kinds. */
export const isSigned: Check = (body, secret, nowMs) =>
  checks.some((check) => check(body, secret, nowMs))
