/**
 * Clients of every kind on a faulty service. Each client sends one request after the other to one
 * of the nodes, and the recorder stores every outcome.
 */
import { asAdmin } from "../e2e/client.ts"
import { eventually, pause } from "../e2e/process.ts"
import { Random } from "./random.ts"
import { noNode, Recorder } from "./recorder.ts"
import { CabinetWorkload } from "./workloads/cabinets.ts"
import { KeyedWorkload } from "./workloads/keyed-requests.ts"
import { MailboxWorkload, type WorkloadMailbox } from "./workloads/mailboxes.ts"
import { OutgoingWorkload } from "./workloads/outgoing.ts"
import { type Receivers, startReceivers } from "./workloads/receivers.ts"
import { RegistrationWorkload } from "./workloads/registrations.ts"
import { ContentWorkload } from "./workloads/contents.ts"
import { SessionWorkload } from "./workloads/sessions.ts"

/** Mailboxes for checking whether a node serves: they cover shards of all nodes. */
const probeCount = 12
/**
 * Pauses between two requests of one client: short until a fault has begun, so that it interrupts
 * many requests, and longer while the test waits, which is most of the time.
 */
const shortPauseMs = 15
const longPauseMs = 120
const pollMs = 100

/** Short retry waits, and many attempts. */
export const workloadEnv = {
  OUTBOUND_ALLOW: "127.0.0.0/8",
  RETRY_SCHEDULE: ["0s", ...Array.from({ length: 30 }, () => "2s")].join(",")
}

export class Workload {
  readonly random: Random
  readonly recorder: Recorder
  readonly mailboxes: MailboxWorkload
  readonly sessions: SessionWorkload
  readonly contents: ContentWorkload
  readonly keyed: KeyedWorkload
  readonly cabinets: CabinetWorkload
  readonly outgoing: OutgoingWorkload
  readonly registrations: RegistrationWorkload
  readonly probes: ReadonlyArray<WorkloadMailbox>
  private readonly targets: () => ReadonlyArray<string>
  private readonly ending = new AbortController()
  private clients: ReadonlyArray<Promise<void>> = []
  private pauseMs = shortPauseMs

  private constructor(
    random: Random,
    recorder: Recorder,
    targets: () => ReadonlyArray<string>,
    mailboxes: MailboxWorkload,
    receivers: Receivers,
    localMailbox: WorkloadMailbox,
    probes: ReadonlyArray<WorkloadMailbox>
  ) {
    this.random = random
    this.recorder = recorder
    this.targets = targets
    this.mailboxes = mailboxes
    this.probes = probes
    this.outgoing = new OutgoingWorkload(recorder, random.for("outgoing"), receivers, localMailbox)
    this.registrations = new RegistrationWorkload(
      recorder,
      random.for("registrations"),
      mailboxes,
      receivers
    )
    this.sessions = new SessionWorkload(recorder, random.for("sessions"))
    this.contents = new ContentWorkload(recorder, random.for("contents"))
    this.keyed = new KeyedWorkload(recorder, random.for("keyed"))
    this.cabinets = new CabinetWorkload(recorder, mailboxes)
  }

  /** Starts the clients at these nodes, which all respond now, until the load is ended. */
  static async start(targets: () => ReadonlyArray<string>, seed: string): Promise<Workload> {
    const random = new Random(seed)
    const recorder = new Recorder()
    const receivers = await startReceivers()
    const mailboxes = new MailboxWorkload(recorder, random.for("mailboxes"))
    const [url = ""] = targets()
    const probes: Array<WorkloadMailbox> = []
    for (let n = 0; n < probeCount; n += 1) {
      probes.push(await mailboxes.open("c0", url, `probe${n}`))
    }
    const local = await mailboxes.open("c0", url, "local")
    await mailboxes.start(url)
    const load = new Workload(random, recorder, targets, mailboxes, receivers, local, probes)
    load.startClients()
    return load
  }

  get acknowledged(): number {
    return this.recorder.acknowledged
  }

  get recentFailures(): ReadonlyArray<string> {
    return this.recorder.recentFailures
  }

  /** Sends fewer requests until `wait` has ended. */
  async withLongPauses<A>(wait: () => Promise<A>): Promise<A> {
    this.pauseMs = longPauseMs
    try {
      return await wait()
    } finally {
      this.pauseMs = shortPauseMs
    }
  }

  async end(): Promise<void> {
    this.ending.abort()
    await Promise.all(this.clients)
  }

  /**
   * Waits until each of these nodes accepts deposits for mailboxes of all of them and lists them.
   * Returns the elapsed ms.
   */
  async waitUntilServed(urls: ReadonlyArray<string>, withinMs: number): Promise<number> {
    const startedMs = performance.now()
    const all = urls.flatMap((url) => this.probes.map((mailbox) => [url, mailbox] as const))
    await Promise.all(
      all.map(([url, mailbox], at) =>
        eventually(
          withinMs,
          `${mailbox.path} is served by ${url}`,
          () => this.serves(`p${at}`, url, mailbox),
          pollMs
        )
      )
    ).catch((error: unknown) => {
      throw new Error(
        `${String(error)}; failed recently:\n${this.recentFailures.slice(-5).join("\n")}`
      )
    })
    return Math.round(performance.now() - startedMs)
  }

  /** Any of the nodes that clients use now. */
  readonly anyNode = (): string => {
    const urls = this.targets()
    return urls[Math.floor(Math.random() * urls.length)] ?? noNode
  }

  private async serves(
    client: string,
    url: string,
    mailbox: WorkloadMailbox
  ): Promise<true | undefined> {
    if (!await this.mailboxes.deposit(client, url, mailbox)) return undefined
    const { answer } = await this.recorder.send({ url, path: mailbox.path, headers: asAdmin })
    return answer?.status === 200 ? true : undefined
  }

  private startClients(): void {
    const { mailboxes, cabinets, contents, keyed, outgoing, registrations, sessions } = this
    const acts: ReadonlyArray<(client: string) => Promise<void>> = [
      ...Array.from(
        { length: 5 },
        () => (client: string) => mailboxes.sendRandom(client, this.anyNode())
      ),
      (client) => sessions.runSession(client, this.anyNode),
      (client) => sessions.readRecent(client, this.anyNode()),
      (client) => contents.sendRandom(client, this.anyNode()),
      (client) => outgoing.sendRandom(client, this.anyNode()),
      (client) => registrations.sendRandom(client, this.anyNode()),
      (client) => cabinets.sendRandom(client, this.anyNode()),
      () => keyed.sendRandom(this.anyNode())
    ]
    this.clients = acts.map((act, at) => this.loop(() => act(`c${at + 1}`)))
  }

  private async loop(act: () => Promise<void>): Promise<void> {
    while (!this.ending.signal.aborted) {
      await act().catch((error: unknown) => this.recorder.violations.push(String(error)))
      await pause(this.pauseMs)
    }
  }
}
