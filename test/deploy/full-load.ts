/** A load that moves the metrics of a single node, and those that it cannot move. */
import { createSamplePages } from "../e2e/browser/sample-pages.ts"
import { asAdmin, expectStatus, notification, postXml, send } from "../e2e/client.ts"
import { closeReceivers, ControlledReceiver, receiver } from "../e2e/receivers.ts"

/** More recipients of one origin than it gets requests at a time. */
const heldRecipients = 24
/** More failures than open the circuit of an origin. */
const failingRecipients = 16
/** Retries of a relay: the circuit of an origin opens for longer with each that fails. */
const retries = 30
const contentBytes = 40 * 1024
/** The address of a client on another machine, as the proxy of this one reports it. */
const stranger = "203.0.113.9"
const strangerRequests = 40

/** The settings of a node that this load brings to its bounds. */
export const boundedEnv = {
  BASE_URL: "",
  OUTBOUND_ALLOW: "127.0.0.0/8",
  TRUSTED_PROXIES: "127.0.0.1",
  RATE_LIMIT_ADDRESS: `${strangerRequests / 2}/1m`,
  ANONYMOUS_BYTES_MAX: "8MiB",
  ANONYMOUS_NETWORK_BYTES_MAX: "64KiB",
  DISK_FREE_MIN: "1MiB",
  IDLE_TIMEOUT: "5s",
  RETRY_SCHEDULE: `0s,${Array.from({ length: retries }, () => "1s").join(",")}`
}

/** The metrics that stay 0 on a healthy node, or for less time than a scrape sees, and why. */
export const unmovedMetrics: Readonly<Record<string, string>> = {
  restante_actor_inbox_messages: "a reply takes less time than a scrape sees",
  restante_actor_quarantines_total: "only a defect causes it",
  restante_actor_redecisions_total: "only a lost commit causes it",
  restante_actor_restarts_total: "only a defect causes it",
  restante_actors_quarantined: "only a defect causes it",
  restante_anonymous_requests_dropped_total: "only a day's full budget of a network causes it",
  restante_commit_conflicts_total: "only a shard that moves causes it",
  restante_commit_failures_total: "only a fault of the store causes it",
  restante_nats_messages_total: "the node has no NATS",
  restante_nats_writes_total: "the node has no NATS",
  restante_telemetry_spans_dropped_total: "the node has no collector",
  restante_timer_lateness_seconds: "a timer is late for less time than a scrape sees",
  restante_timers_due: "a timer is due for less time than a scrape sees",
  restante_timers_in_flight: "an answer to a timer takes less time than a scrape sees"
}

/** What the load moves beside the metrics themselves: series by one of their labels. */
export const movedSeries: ReadonlyArray<string> = [
  ...["delivered", "fetched", "permanent_failure", "retryable_failure"]
    .map((outcome) => `restante_delivery_attempts_total{outcome="${outcome}"}`),
  ...["2xx", "3xx", "4xx", "5xx"]
    .map((status) => `restante_http_requests_total{status="${status}"}`),
  "restante_http_rate_limited_total{policy=\"address\"}",
  "restante_quota_refusals_total{quota=\"network\"}",
  ...[
    ...["account", "audit", "background-task", "cabinet", "content", "mailbox", "notification"],
    ...["outgoing-mailbox", "registration", "session", "throttle"]
  ].map((kind) => `restante_actor_decisions_total{kind="${kind}"}`)
]

/** Reads the first events of a live stream, and leaves it. */
const followStream = async (base: string, path: string): Promise<void> => {
  const leaving = new AbortController()
  const headers = { ...asAdmin, accept: "text/event-stream" }
  const response = await fetch(`${base}${path}`, { headers, signal: leaving.signal })
  if (response.body === null) throw new Error(`${path} answers ${response.status}, not a stream`)
  const reader = response.body.getReader()
  const { done } = await reader.read()
  if (done) throw new Error(`the stream of ${path} has ended`)
  leaving.abort()
}

/** Sends a notification of the admin to these recipients. */
const relay = async (base: string, to: ReadonlyArray<string>): Promise<void> => {
  const document = notification("relay").replace(
    "<item>",
    `${to.map((one) => `<to>${one}</to>`).join("")}<item>`
  )
  expectStatus(await postXml(base, "/outgoing/admin", document, asAdmin), 201, 202)
}

const recipients = (origin: string, count: number): ReadonlyArray<string> =>
  Array.from({ length: count }, (_, n) => `${origin}/${n}`)

/** Requests that the node refuses: for the client's fault, its rate, and its quota. */
const makeRefused = async (base: string): Promise<void> => {
  expectStatus(await send(base, "/accounts"), 401)
  expectStatus(await send(base, "/mailboxes/nobody", { headers: asAdmin }), 404)
  expectStatus(await send(base, "/customers?agemin=old", { headers: asAdmin }), 400)
  const headers = { "x-forwarded-for": stranger, "content-type": "application/octet-stream" }
  const body = Buffer.alloc(contentBytes)
  const publish = () => send(base, "/content", { method: "POST", headers, body })
  const statuses = await Promise.all(Array.from({ length: 3 }, publish))
  if (!statuses.every(({ status }) => [202, 201, 429, 507].includes(status))) {
    throw new Error(`a stranger's content is answered ${statuses.map(({ status }) => status)}`)
  }
  await Promise.all(
    Array.from(
      { length: strangerRequests },
      () => send(base, "/", { headers: { "x-forwarded-for": stranger } })
    )
  )
}

/** Sends requests of each kind to a node. */
export class FullLoad {
  private readonly base: string
  private readonly held = new ControlledReceiver()

  constructor(base: string) {
    this.base = base
  }

  /** Fills the node with each kind of resource, and with relays that wait. */
  async begin(): Promise<void> {
    await createSamplePages(this.base)
    const patient = await receiver((_, response) => this.held.take(response))
    const failing = await receiver((_, response) => void response.destroy())
    await relay(this.base, recipients(patient, heldRecipients))
    await relay(this.base, recipients(failing, failingRecipients))
  }

  /** A few requests of each kind. */
  async turn(): Promise<void> {
    const { base } = this
    const alice = "/mailboxes/alice"
    expectStatus(await postXml(base, alice, notification("turn")), 202)
    await followStream(base, alice)
    await relay(base, [`${base}${alice}`])
    const published = await send(base, "/content", { method: "POST", headers: asAdmin, body: "a" })
    expectStatus(published, 201, 202)
    expectStatus(await postXml(base, "/sessions", "<answer continue=\"true\"/>"), 201)
    expectStatus(await send(base, "/customers?agemin=21", { headers: asAdmin }), 200)
    await makeRefused(base)
  }

  /** Lets the waiting relays end. */
  end(): void {
    this.held.answers(202)
    closeReceivers()
  }
}
