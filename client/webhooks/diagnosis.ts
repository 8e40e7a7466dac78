/**
 * What is wrong with a push whose signature a receiver rejects (protocol §1.4). The check itself is
 * that of `signatures.ts`, which this module asks about the given push, and then about what it may
 * have been before something changed it. It never shows an expected signature.
 */
import { bodyFindingBytesMax, findingSignaturesMax, signatureBytes,
  toleranceMs as toleranceMsDefault } from "../limits.ts"
import { InvalidSignature, type SignatureFault } from "../transport/index.ts"
import { bodyChanges } from "./body-variants.ts"
import { bytesOf, decodeBase64, field, type IncomingHeaders, type Verification, verifyHubSignature,
  verifySignature } from "./signatures.ts"

/** The result of a check, in three parts: what happened, to what, what to do. */
export interface SignatureDiagnosis {
  readonly result: "right" | Exclude<SignatureFault, "too-large">
  readonly problem: string
  readonly subject: string
  readonly advice: string
}

/** How a signature is checked. */
export interface SignatureCheck extends Verification {
  /** Of the registration; by default that of the header fields. */
  readonly scheme?: "standard-webhooks" | "websub" | undefined
  /** The body was copied into a form, which does not keep its line ends: they do not count. */
  readonly isPasted?: boolean | undefined
}

/** A push as it was received. */
interface ReceivedPush {
  readonly headers: IncomingHeaders
  readonly body: Uint8Array
  readonly secrets: ReadonlyArray<string>
}

type Scheme = NonNullable<SignatureCheck["scheme"]>

/** Verifies a push; the time counts only with a clock. */
type Verify = (push: ReceivedPush, verification?: Verification) => Promise<unknown>

/** `webhook-timestamp` in milliseconds. */
const timeMsOf = ({ headers }: Pick<ReceivedPush, "headers">): number =>
  Number(field(headers, "webhook-timestamp")) * 1000

const verifiers: Readonly<Record<Scheme, Verify>> = {
  "standard-webhooks": (push, verification = { nowMs: timeMsOf(push) }) =>
    verifySignature(push, push.secrets, verification),
  websub: (push) => verifyHubSignature(push, push.secrets)
}

/** Why the check fails; undefined if it does not. `secret`: the secret is none. */
const faultOf = async (
  checking: Promise<unknown>
): Promise<SignatureFault | "secret" | undefined> => {
  try {
    await checking
    return undefined
  } catch (error) {
    if (error instanceof InvalidSignature) return error.fault
    // Web Crypto refuses an empty key by a DataError.
    if (error instanceof Error && /^(Type|Data)Error$/.test(error.name)) return "secret"
    throw error
  }
}

const units: ReadonlyArray<readonly [name: string, seconds: number]> = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1]
]

/** A duration for people, by its two largest units. */
const durationText = (ms: number): string => {
  const seconds = Math.max(1, Math.round(Math.abs(ms) / 1000))
  const first = units.findIndex(([, size]) => seconds >= size)
  const parts = units.slice(first, first + 2).flatMap(([name, size], at) => {
    const rest = at === 0 ? seconds : seconds % (units[first]?.[1] ?? 1)
    const count = Math.floor(rest / size)
    return count === 0 ? [] : [`${count} ${name}${count === 1 ? "" : "s"}`]
  })
  return parts.join(" and ")
}

/* What the header fields show. */

const fieldsOf: Readonly<Record<Scheme, ReadonlyArray<string>>> = {
  "standard-webhooks": ["webhook-id", "webhook-timestamp", "webhook-signature"],
  websub: ["x-hub-signature"]
}

/** Signatures of other senders, in order to name them. */
const foreignFields: ReadonlyArray<readonly [name: string, sender: string]> = [
  ["x-hub-signature", "a push of a WebSub subscription: it is checked with its hub.secret"],
  ["x-hub-signature-256", "a webhook of GitHub, or of a service with its scheme"],
  ["svix-signature", "a webhook of Svix, whose fields begin with svix-"],
  ["stripe-signature", "a webhook of Stripe"],
  ["x-grafana-alerting-signature", "a webhook of Grafana"],
  ["webhook-signature", "a push of a registration in the native form, with a whsec_ secret"]
]

const missingFields = ({ headers }: ReceivedPush, scheme: Scheme): SignatureDiagnosis => {
  const missing = fieldsOf[scheme].filter((name) => !field(headers, name))
  const [, foreign] =
    foreignFields.find(([name]) => !fieldsOf[scheme].includes(name) && field(headers, name)) ?? []
  const isAnyThere = missing.length < fieldsOf[scheme].length
  return {
    result: "missing",
    problem: `the signature cannot be checked: there is no ${missing.join(" and no ")}`,
    subject: foreign === undefined
      ? "the header fields"
      : `the header fields, which are of ${foreign}`,
    advice: isAnyThere
      ? "give all header fields as they arrived: a proxy or a framework may have removed this one"
      : "give the header fields as lines such as “webhook-id: …”, as they arrived; if they did "
        + "not, the request is not a signed push, or a proxy has removed them"
  }
}

const diagnosed =
  (result: SignatureDiagnosis["result"]) =>
  (problem: string, subject: string, advice: string): SignatureDiagnosis => ({
    result,
    problem,
    subject,
    advice
  })

const malformed = diagnosed("malformed")

const wrong = diagnosed("wrong")

const malformedField = ({ headers }: ReceivedPush, scheme: Scheme): SignatureDiagnosis => {
  if (scheme === "websub") {
    return malformed(
      "the signature is not sha256= and 64 hexadecimal digits",
      "x-hub-signature",
      "give it as it arrived, without quotes; … stands for a part that a page leaves out"
    )
  }
  const time = field(headers, "webhook-timestamp") ?? ""
  return malformed(
    "the time is no whole number of seconds since 1970"
      + (/^\d{13}$/.test(time) ? ": it has milliseconds" : ""),
    "webhook-timestamp",
    "give it as it arrived: it is signed in this very form"
  )
}

/** The signatures of version 1 in `webhook-signature`. */
const knownSignatures = ({ headers }: ReceivedPush): ReadonlyArray<string> =>
  (field(headers, "webhook-signature") ?? "").split(" ").filter((one) => one.startsWith("v1,"))
    .slice(0, findingSignaturesMax)

/** What is wrong with the form of the signatures in `webhook-signature`. */
const formFinding = (push: ReceivedPush, scheme: Scheme): SignatureDiagnosis | undefined => {
  if (scheme === "websub") return undefined
  const known = knownSignatures(push)
  if (known.length === 0) {
    const text = field(push.headers, "webhook-signature") ?? ""
    const [, version = "none"] = /^(v\w{1,8}),/.exec(text) ?? []
    return malformed(
      `the signature has another version than v1: ${version}`,
      "webhook-signature",
      "give it as it arrived: each signature is “v1,” and base64, and restante signs so; one of "
        + "another version is for another key, or of another sender"
    )
  }
  if (known.some((one) => /(?:…|\.\.\.)$/.test(one))) {
    return malformed(
      "the signature is not complete: … stands for its rest",
      "webhook-signature",
      "take it from the request that your receiver got: the page of attempts shows only its "
        + "beginning, since whoever knows all of it could send the push again"
    )
  }
  const isComplete = known.some((one) => decodeBase64(one.slice(3))?.length === signatureBytes)
  return isComplete ? undefined : malformed(
    `the signature is not base64 of ${signatureBytes} bytes`,
    "webhook-signature",
    "give it as it arrived: 44 characters after “v1,”, the last of which is “=”"
  )
}

/** The push with so many signatures as are compared with each change of the body. */
const narrowed = (push: ReceivedPush, scheme: Scheme): ReceivedPush => {
  if (scheme === "websub") return push
  const headers = {
    "webhook-id": field(push.headers, "webhook-id"),
    "webhook-timestamp": field(push.headers, "webhook-timestamp"),
    "webhook-signature": knownSignatures(push).join(" ")
  }
  return { ...push, headers }
}

/* What the body shows. */

const sizeText = ({ body }: ReceivedPush): string =>
  `the body of ${body.length} ${body.length === 1 ? "byte" : "bytes"}`

/** The change of the body that explains the signature. */
const bodyFinding = async (
  push: ReceivedPush,
  scheme: Scheme,
  isPasted: boolean
): Promise<SignatureDiagnosis | undefined> => {
  if (push.body.length > bodyFindingBytesMax) return undefined
  for (const { advice, change, isOfLines, undo } of bodyChanges) {
    const body = undo(push.body)
    if (body === undefined || await faultOf(verifiers[scheme]({ ...push, body })) !== undefined) {
      continue
    }
    return isPasted && isOfLines === true ? pastedRight(push, scheme) : wrong(
      `no signature matches: the body was changed, as the sender's body ${change}`,
      sizeText(push),
      advice
    )
  }
  return undefined
}

/** Whether the header fields say that the body is another one. */
const lengthFinding = (push: ReceivedPush): SignatureDiagnosis | undefined => {
  const { body, headers } = push
  const coding = field(headers, "content-encoding")
  if (coding !== undefined && coding !== "identity") {
    return wrong(
      "no signature matches: the body is compressed, by its Content-Encoding",
      sizeText(push),
      "decompress it first: the signature is of the body without Content-Encoding"
    )
  }
  const length = field(headers, "content-length")
  if (length === undefined || !/^\d{1,15}$/.test(length) || Number(length) === body.length) {
    return undefined
  }
  return wrong(
    `no signature matches: the Content-Length is ${length}`,
    `${sizeText(push)}, which is not the one that arrived, or not all of it`,
    "give the bytes as they arrived: write them to a file before anything reads them"
  )
}

/* What the secret shows. */

const base64Of = (text: string): string =>
  btoa(Array.from(new TextEncoder().encode(text), (one) => String.fromCharCode(one)).join(""))

/** Wrong keys of a secret, by which a program may have signed. */
const wrongKeys: ReadonlyArray<readonly [name: string, key: (secret: string) => string]> = [
  ["the text of the whole secret, with whsec_", (secret) => secret],
  ["the text after whsec_", (secret) => secret.replace(/^whsec_/, "")]
]

const secretFinding = async (
  push: ReceivedPush,
  scheme: Scheme
): Promise<SignatureDiagnosis | undefined> => {
  if (scheme === "websub") return undefined
  for (const [name, keyOf] of wrongKeys) {
    const secrets = push.secrets.map((secret) => `whsec_${base64Of(keyOf(secret))}`)
    if (await faultOf(verifiers[scheme]({ ...push, secrets })) === undefined) {
      return wrong(
        `the signature was made with another key: ${name}`,
        "the secret",
        "whoever signs or verifies must take the decoded base64 after whsec_ as the key"
      )
    }
  }
  return undefined
}

const malformedSecret = malformed(
  "the secret is not whsec_ and base64",
  "the secret",
  "copy all of it, with or without whsec_, from the answer that created the registration; if it is "
    + "lost, let the service make a new one"
)

const unknownCause = (push: ReceivedPush, scheme: Scheme): SignatureDiagnosis =>
  wrong(
    "no signature matches the body and the secret",
    `${sizeText(push)}, or the secret`
      + (scheme === "websub" ? "" : ", or webhook-id and webhook-timestamp"),
    "verify the bytes as they arrive, since JSON or XML that was parsed and written again has "
      + "others; use the secret of this registration, not of another one and not an earlier one; "
      + "take header fields and body from the same request"
  )

/* The whole. */

const right = (push: ReceivedPush, scheme: Scheme, restriction = ""): SignatureDiagnosis =>
  diagnosed("right")(
    "the signature is right",
    scheme === "websub"
      ? `x-hub-signature, of ${sizeText(push)}${restriction}`
      : `webhook-signature of ${field(push.headers, "webhook-id")}, of ${sizeText(push)}`
        + restriction,
    "if your receiver rejects this push, it verifies other bytes, or with another secret: give its "
      + "library the body before anything parses it, and this secret"
  )

const pastedRight = (push: ReceivedPush, scheme: Scheme): SignatureDiagnosis =>
  right(push, scheme, ", but for line ends, which a form does not keep")

/** The result of checking the body, the secret and the signatures, whatever the time is. */
const diagnoseContent = async (
  push: ReceivedPush,
  scheme: Scheme,
  isPasted: boolean
): Promise<SignatureDiagnosis> => {
  const fault = await faultOf(verifiers[scheme](push))
  if (fault === undefined) return right(push, scheme)
  if (fault === "secret") return malformedSecret
  const few = narrowed(push, scheme)
  return formFinding(push, scheme) ??
    await bodyFinding(few, scheme, isPasted) ??
    await secretFinding(few, scheme) ??
    lengthFinding(push) ??
    unknownCause(push, scheme)
}

/** The time is too far from now, and what is to be said of the rest. */
const stale = (
  push: ReceivedPush,
  nowMs: number,
  toleranceMs: number,
  content: SignatureDiagnosis
): SignatureDiagnosis => {
  const ageMs = nowMs - timeMsOf(push)
  const way = ageMs > 0 ? "old" : "in the future"
  const time = `the time of the push is ${durationText(ageMs)} ${way}, and `
    + `${durationText(toleranceMs)} are allowed`
  if (content.result !== "right") return { ...content, problem: `${content.problem}; and ${time}` }
  return {
    result: "stale",
    problem: time,
    subject: `webhook-timestamp; otherwise ${content.problem}: ${content.subject}`,
    advice: ageMs > 0
      ? "check a push when it arrives; if this one was checked then, set the clock of your "
        + "receiver, or find what delayed the push: a new attempt has a new time"
      : "set the clock of your receiver, which is slow"
  }
}

const schemeOf = (headers: IncomingHeaders): Scheme =>
  field(headers, "x-hub-signature") && !field(headers, "webhook-signature")
    ? "websub"
    : "standard-webhooks"

/**
 * Says whether the signature of a push is right, or else what is wrong: a header that is missing, a
 * time that is too old, another version, a body that was changed, another secret. It needs no
 * service. `secrets` as for verifySignature, or the hub.secret of a WebSub subscription.
 */
export const diagnoseSignature = async (
  incoming: { readonly headers: IncomingHeaders; readonly body: string | Uint8Array },
  secrets: string | ReadonlyArray<string>,
  { isPasted = false, nowMs = Date.now(), scheme, toleranceMs = toleranceMsDefault }:
    SignatureCheck = {}
): Promise<SignatureDiagnosis> => {
  const { headers } = incoming
  const push: ReceivedPush = {
    headers,
    body: await bytesOf(incoming),
    secrets: typeof secrets === "string" ? [secrets] : secrets
  }
  const chosen = scheme ?? schemeOf(headers)
  const fault = await faultOf(verifiers[chosen](push, { nowMs, toleranceMs }))
  if (fault === "missing") return missingFields(push, chosen)
  if (fault === "malformed") return malformedField(push, chosen)
  const content = await diagnoseContent(push, chosen, isPasted)
  return fault === "stale" ? stale(push, nowMs, toleranceMs, content) : content
}
