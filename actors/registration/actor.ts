/** The push registration bound to the runtime. Performs verifications, checks and pushes. */
import { Effect } from "effect"
import { type Address, type Behavior, isRefusal, keyOf, type Peers,
  type RecordsApi } from "../../runtime/index.ts"
import { reportFailure } from "../failure-reports/index.ts"
import { type Keyring, sealingKeyId, signingSecretOf } from "../keyring.ts"
import { challengeBytesMax } from "../limits.ts"
import { askMailbox, registrationKind } from "../mailbox/index.ts"
import type { DeliveryOutcome, FetchOutcome, Schedule } from "../outbound/index.ts"
import { codecsOf } from "../schemas.ts"
import { observed } from "./attempts.ts"
import { registrationTable } from "./decide.ts"
import { causeOf, checkMailbox, mailboxOf, PushResources, unavailable } from "./mailbox-reader.ts"
import { type RegistrationAction, RegistrationMessage, type RegistrationReply,
  RegistrationState } from "./protocol.ts"
import { push, type PushDependencies } from "./push.ts"
import { sendTest } from "./test-push.ts"

/** The dependencies of registrations. */
export interface RegistrationDependencies extends PushDependencies {
  readonly schedule: Schedule
  /** Where the mailboxes of accounts are listed. */
  readonly records: Pick<RecordsApi, "write">
}

type Verify = Extract<RegistrationAction, { readonly _tag: "Verify" }>

/** WebSub §5.3 requires a number of seconds. Ten years mean that the lease does not end. */
const unendingLeaseSeconds = 10 * 365 * 86_400

/** The callback with these parameters after its own ones (WebSub §5.3). */
const withQuery = (callback: string, parameters: Readonly<Record<string, string>>): string => {
  const base = callback.split("#", 1)[0] ?? callback
  const query = new URLSearchParams(parameters).toString()
  return `${base}${base.includes("?") ? "&" : "?"}${query}`
}

/** Delivered if the response is a 2xx whose body is exactly the challenge. */
const echoOutcome = (outcome: FetchOutcome, challenge: string): DeliveryOutcome => {
  if (outcome._tag !== "Fetched") return outcome
  const { bytes, code } = outcome.fetched
  return Buffer.from(bytes).toString("utf8") === challenge
    ? { _tag: "Delivered", code }
    : { _tag: "PermanentFailure", code, problem: "the callback did not echo the challenge" }
}

const verify = (
  { links, outbound, random }: RegistrationDependencies,
  self: Address,
  action: Verify
): Effect.Effect<RegistrationMessage> => {
  const { callback, challenge, leaseSeconds, mode, topicFormat } = action
  const lease = leaseSeconds === 0 ? unendingLeaseSeconds : leaseSeconds
  const uri = withQuery(callback, {
    "hub.mode": mode,
    "hub.topic": links.topic(mailboxOf(self), topicFormat),
    "hub.challenge": challenge,
    ...mode === "subscribe" ? { "hub.lease_seconds": String(lease) } : {}
  })
  const cause = causeOf(self, action)
  const get = { uri, cause, bytesMax: challengeBytesMax, refusesRedirects: true }
  const request = observed(action, (observer) => outbound.get({ ...get, observer }))
  return Effect.map(request, ({ exchange, outcome }) => ({
    _tag: "Verified",
    challenge,
    outcome: echoOutcome(outcome, challenge),
    exchange,
    random: random()
  }))
}

/** Notifies a subscriber that its subscription has ended (WebSub §5.2). It is not retried. */
const notifyDenied = (
  { links, outbound }: RegistrationDependencies,
  self: Address,
  action: Extract<RegistrationAction, { readonly _tag: "Deny" }>
): Effect.Effect<void> => {
  const { callback, reason, topicFormat } = action
  const uri = withQuery(callback, {
    "hub.mode": "denied",
    "hub.topic": links.topic(mailboxOf(self), topicFormat),
    "hub.reason": reason
  })
  const cause = causeOf(self, action)
  const get = { uri, cause, bytesMax: challengeBytesMax, refusesRedirects: true }
  return Effect.asVoid(outbound.get(get))
}

const codecs = codecsOf(RegistrationState, RegistrationMessage)

/** The state with each of its secrets replaced. */
const withSecrets = (
  state: RegistrationState,
  replace: (secret: string) => string
): RegistrationState => {
  if (state._tag !== "Registered") return state
  const { intent, secrets } = state
  return {
    ...state,
    secrets: secrets.map((secret) => ({ ...secret, value: replace(secret.value) })),
    ...intent?.secret === undefined
      ? {}
      : { intent: { ...intent, secret: replace(intent.secret) } }
  }
}

/** The state is stored without volatile parts, and with its secrets encrypted for its record. */
const encodeFor = (keyring: Keyring) => (state: RegistrationState, _: number, self: Address) => {
  if (state._tag !== "Registered") return codecs.encode(state)
  const {
    checkAgain: _check,
    failureReportUntilMs: _reporting,
    running: _running,
    verifyingUntilMs: _verifying,
    ...stored
  } = state
  return codecs.encode(withSecrets(stored, (secret) => keyring.seal(signingSecretOf(self), secret)))
}

/** Without its key a secret is unreadable, and so is the state: nothing replaces it. */
const decodeFor = (keyring: Keyring) => (text: string, _: number, self: Address) =>
  withSecrets(codecs.decode(text), (secret) => {
    const id = sealingKeyId(secret)
    const opened = id === undefined ? secret : keyring.open(signingSecretOf(self), secret)
    if (opened !== undefined) return opened
    throw new Error(`a secret of ${keyOf(self)} is under the key ${id}: add it to SECRET_KEY_FILE`)
  })

/** Removes the registration from its mailbox. */
const detach = (peers: Peers, self: Address): Effect.Effect<RegistrationMessage | void> =>
  // If this fails, the deferred timer fires and the actor performs it again.
  askMailbox(peers, mailboxOf(self), { _tag: "Unregister", id: self.id }).pipe(
    Effect.as<RegistrationMessage>({ _tag: "Detached", untilMs: 0 }),
    Effect.catch(() => Effect.void)
  )

/** Reports a suspension to the owner of the mailbox, whoever has made the registration. */
const report = (
  { links, records }: RegistrationDependencies,
  peers: Peers,
  self: Address,
  { cause, ...action }: Extract<RegistrationAction, { readonly _tag: "ReportFailure" }>
): Effect.Effect<RegistrationMessage | void> => {
  const mailbox = mailboxOf(self)
  const described = askMailbox(peers, mailbox, { _tag: "Describe", reader: {} })
  return reportFailure(peers, {
    actorId: self.id,
    action,
    cause,
    // Without the mailbox there is no owner.
    account: Effect.map(
      described,
      (reply) => isRefusal(reply) || reply._tag !== "Described" ? undefined : reply.view.owner
    ),
    url: `${links.registrations(mailbox)}/${self.id.slice(mailbox.length + 1)}`,
    records
  })
}

export const registration = (
  deps: RegistrationDependencies
): Behavior<RegistrationState, RegistrationMessage, RegistrationReply, RegistrationAction> => {
  const resources = new PushResources(deps.keyring)
  return {
    kind: registrationKind,
    initial: { _tag: "Absent" },
    table: registrationTable(deps.schedule),
    ...codecs,
    encode: encodeFor(deps.keyring),
    decode: decodeFor(deps.keyring),
    perform: (action, self, peers) => {
      switch (action._tag) {
        case "Verify":
          if (action.mode === "subscribe") resources.withdraw(self.id, action.callback)
          return verify(deps, self, action)
        case "CheckMailbox":
          return Effect.catch(
            checkMailbox(resources, peers, self, action),
            () => unavailable(action)
          )
        case "Push":
          return push(deps, resources, peers, self, action)
        case "SendTest":
          return sendTest(deps, resources, peers, self, action)
        case "ReportFailure":
          return report(deps, peers, self, action)
        case "Detach":
          resources.withdraw(self.id)
          return detach(peers, self)
        case "Deny":
          return notifyDenied(deps, self, action)
      }
    }
  }
}
