/**
 * Clients of every kind on a faulty service. Each client sends one request after the other to one
 * of the nodes, and the recorder stores every outcome.
 */
import { asAdmin } from "../e2e/client.ts"
import { eventually, pause } from "../e2e/process.ts"
import { type Box, Boxes } from "./boxes.ts"
import { Cabinets } from "./cabinets.ts"
import { startInboxes } from "./inboxes.ts"
import { KeyedRequests } from "./keyed.ts"
import { Posts } from "./posts.ts"
import { Random } from "./random.ts"
import { nowhere, Recorder } from "./recorder.ts"
import { Subscriptions } from "./subscriptions.ts"
import { Contents, Walks } from "./walks.ts"

/** Mailboxes for checking whether a node serves: they cover shards of all nodes. */
const probesCount = 12
/** Pause between two requests of one client. */
const betweenMs = 15
const pollMs = 100

/** Short retry waits, and many attempts. */
export const workloadEnv = {
  OUTBOUND_ALLOW: "127.0.0.0/8",
  RETRY_SCHEDULE: ["0s", ...Array.from({ length: 30 }, () => "2s")].join(",")
}

export class Workload {
  readonly random: Random
  readonly recorder = new Recorder()
  readonly boxes: Boxes
  readonly walks: Walks
  readonly contents: Contents
  readonly keyed: KeyedRequests
  readonly cabinets: Cabinets
  readonly posts: Posts
  readonly subscriptions: Subscriptions
  readonly probes: ReadonlyArray<Box>
  private readonly targets: () => ReadonlyArray<string>
  private readonly ending = new AbortController()
  private clients: ReadonlyArray<Promise<void>> = []

  private constructor(
    { boxes, random, recorder, targets, ...parts }:
      & Pick<
        Workload,
        "random" | "recorder" | "boxes" | "posts" | "subscriptions" | "probes"
      >
      & { readonly targets: () => ReadonlyArray<string> }
  ) {
    this.random = random
    this.recorder = recorder
    this.boxes = boxes
    this.posts = parts.posts
    this.subscriptions = parts.subscriptions
    this.probes = parts.probes
    this.targets = targets
    this.walks = new Walks(recorder, random.for("walks"))
    this.contents = new Contents(recorder, random.for("contents"))
    this.keyed = new KeyedRequests(recorder, random.for("keyed"))
    this.cabinets = new Cabinets(recorder, boxes)
  }

  /** Starts the clients at these nodes, which all respond now, until the load is ended. */
  static async start(targets: () => ReadonlyArray<string>, seed: string): Promise<Workload> {
    const random = new Random(seed)
    const recorder = new Recorder()
    const inboxes = await startInboxes()
    const boxes = new Boxes(recorder, random.for("boxes"))
    const [url = ""] = targets()
    const probes: Array<Box> = []
    for (let n = 0; n < probesCount; n += 1) probes.push(await boxes.open("c0", url, `probe${n}`))
    const relayedTo = await boxes.open("c0", url, "relayed")
    await boxes.start(url)
    const posts = new Posts(recorder, random.for("posts"), inboxes, relayedTo)
    const subscriptions = new Subscriptions(recorder, random.for("pushes"), boxes, inboxes)
    const load = new Workload({
      boxes,
      posts,
      probes,
      random,
      recorder,
      subscriptions,
      targets
    })
    load.begin()
    return load
  }

  get acknowledged(): number {
    return this.recorder.acknowledged
  }

  get refusals(): ReadonlyArray<string> {
    return this.recorder.refusals
  }

  async end(): Promise<void> {
    this.ending.abort()
    await Promise.all(this.clients)
  }

  /**
   * Waits until each of these nodes accepts deposits for mailboxes of all of them and lists them.
   * Returns the elapsed ms.
   */
  async servedAgain(urls: ReadonlyArray<string>, withinMs: number): Promise<number> {
    const begunMs = performance.now()
    const all = urls.flatMap((url) => this.probes.map((box) => [url, box] as const))
    await Promise.all(
      all.map(([url, box], at) =>
        eventually(
          withinMs,
          `${box.path} is served by ${url}`,
          () => this.serves(`p${at}`, url, box),
          pollMs
        )
      )
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}; refused recently:\n${this.refusals.slice(-5).join("\n")}`)
    })
    return Math.round(performance.now() - begunMs)
  }

  /** Any of the nodes that clients use now. */
  readonly anywhere = (): string => {
    const urls = this.targets()
    return urls[Math.floor(Math.random() * urls.length)] ?? nowhere
  }

  private async serves(client: string, url: string, box: Box): Promise<true | undefined> {
    if (!await this.boxes.deposit(client, url, box)) return undefined
    const { answer } = await this.recorder.ask({ url, path: box.path, headers: asAdmin })
    return answer?.status === 200 ? true : undefined
  }

  private begin(): void {
    const { boxes, cabinets, contents, keyed, posts, subscriptions, walks } = this
    const acts: ReadonlyArray<(client: string) => Promise<void>> = [
      ...Array.from({ length: 5 }, () => (client: string) => boxes.act(client, this.anywhere())),
      (client) => walks.walk(client, this.anywhere),
      (client) => walks.inspect(client, this.anywhere()),
      (client) => contents.act(client, this.anywhere()),
      (client) => posts.act(client, this.anywhere()),
      (client) => subscriptions.act(client, this.anywhere()),
      (client) => cabinets.act(client, this.anywhere()),
      () => keyed.act(this.anywhere())
    ]
    this.clients = acts.map((act, at) => this.loop(() => act(`c${at + 1}`)))
  }

  private async loop(act: () => Promise<void>): Promise<void> {
    while (!this.ending.signal.aborted) {
      await act().catch((error: unknown) => this.recorder.surprises.push(String(error)))
      await pause(betweenMs)
    }
  }
}
