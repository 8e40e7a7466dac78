/** Clients that send notifications. */
import { type Answer, asAdmin, notification, parseXml, pathOf } from "../../e2e/client.ts"
import { publicUrl } from "../../e2e/process.ts"
import type { NotificationOutput, RecipientStatus } from "../../histories/models/notification.ts"
import type { Random } from "../random.ts"
import { byStatus, done, gone, type Recorder } from "../recorder.ts"
import type { WorkloadMailbox } from "./mailboxes.ts"
import type { ReceivedRequests, Receivers } from "./receivers.ts"

const recent = 8

const statuses: ReadonlyArray<RecipientStatus> = ["waiting", "retry", "success", "failed"]

const recipientsOf = (answer: Answer): NotificationOutput => ({
  _tag: "Shown",
  recipients: parseXml(answer.text).children.filter(({ name }) => name === "recipient")
    .map(({ attributes }) => ({
      status: statuses.find((one) => one === attributes["status"]) ?? "failed",
      attempts: Number(attributes["attempts"])
    }))
})

export interface SentNotification {
  readonly path: string
  readonly description: string
  isDeleted: boolean
}

/** Notifications to external receivers and to a mailbox of the service itself. */
export class OutgoingWorkload {
  readonly sent: Array<SentNotification> = []
  /** A mailbox of the service itself, and external receivers. */
  readonly localMailbox: WorkloadMailbox
  readonly receivers: ReadonlyArray<ReceivedRequests>
  private readonly recorder: Recorder
  private readonly random: Random
  private readonly toElements: string
  private count = 0

  constructor(
    recorder: Recorder,
    random: Random,
    receivers: Receivers,
    localMailbox: WorkloadMailbox
  ) {
    this.recorder = recorder
    this.random = random
    this.localMailbox = localMailbox
    this.receivers = receivers.recipients.map(({ received }) => received)
    const uris = [...receivers.recipients.map(({ uri }) => uri), `${publicUrl}${localMailbox.path}`]
    this.toElements = uris.map((uri) => `<to>${uri}</to>`).join("")
  }

  async sendRandom(client: string, url: string): Promise<void> {
    const one = this.random.of(this.sent.slice(-recent))
    const turn = this.random.below(20)
    if (one === undefined || turn < 7) await this.send(client, url)
    else if (turn < 19) await this.show(client, url, one)
    else await this.remove(client, url, one)
  }

  async show(
    client: string,
    url: string,
    { path }: SentNotification
  ): Promise<NotificationOutput | undefined> {
    const operation = { client, resource: path, input: { kind: "show" as const } }
    const request = { url, path, headers: asAdmin }
    const { notifications } = this.recorder.histories
    const found = await this.recorder.invoke(
      notifications,
      operation,
      request,
      (answer) =>
        byStatus<NotificationOutput>(answer, {
          200: () => recipientsOf(answer),
          404: gone,
          410: gone
        })
    )
    return found?.output
  }

  private async send(client: string, url: string): Promise<void> {
    const description = `relay${this.count++}`
    const body = notification(description).replace("<item>", `${this.toElements}<item>`)
    // The service delivers a queued notification locally, at an unknown time.
    this.recorder.histories.mailboxes.push({
      client,
      resource: this.localMailbox.name,
      input: { kind: "deposit", id: description },
      start: performance.now(),
      end: Infinity,
      outcome: "info"
    })
    const { answer, end, start } = await this.recorder.send({
      url,
      path: "/outgoing/admin",
      method: "POST",
      body,
      headers: asAdmin
    })
    if (answer?.status !== 202) return
    const path = pathOf(answer.headers.get("location"))
    this.sent.push({ path, description, isDeleted: false })
    const recipients = this.toElements.split("<to>").length - 1
    this.recorder.histories.notifications.push({
      client,
      resource: path,
      input: { kind: "queue", recipients },
      output: { _tag: "Done" },
      start,
      end,
      outcome: "ok"
    })
  }

  private async remove(client: string, url: string, one: SentNotification): Promise<void> {
    // An attempt in progress may still succeed, or not.
    one.isDeleted = true
    const operation = { client, resource: one.path, input: { kind: "delete" as const } }
    const request = { url, path: one.path, method: "DELETE", headers: asAdmin }
    const { notifications } = this.recorder.histories
    await this.recorder.invoke(
      notifications,
      operation,
      request,
      (answer) => byStatus<NotificationOutput>(answer, { 204: done, 404: gone, 410: gone })
    )
  }
}
