/** Clients that register for pushes, each registration with its own callback. */
import { type Answer, asAdmin, childOf, parseXml, pathOf } from "../../e2e/client.ts"
import type { RegistrationOutput, RegistrationStatus } from "../../histories/models/registration.ts"
import type { Random } from "../random.ts"
import { byStatus, done, gone, type Recorder } from "../recorder.ts"
import type { MailboxWorkload, WorkloadMailbox } from "./mailboxes.ts"
import type { ReceivedRequests, Receivers } from "./receivers.ts"

const recent = 8

export interface WorkloadRegistration {
  readonly path: string
  readonly mailbox: WorkloadMailbox
  readonly received: ReceivedRequests
  /** Position in the log after which notifications are pushed. */
  readonly after: number
  isDeleted: boolean
}

const registrationOf = (answer: Answer): Extract<RegistrationOutput, { _tag: "Shown" }> => {
  const document = parseXml(answer.text)
  // The model rejects any other status.
  const status = document.attributes["status"] as RegistrationStatus
  return { _tag: "Shown", status, cursor: Number(childOf(document, "cursor").text) }
}

export class RegistrationWorkload {
  readonly all: Array<WorkloadRegistration> = []
  private readonly recorder: Recorder
  private readonly random: Random
  private readonly mailboxes: MailboxWorkload
  private readonly receivers: Receivers
  private count = 0

  constructor(
    recorder: Recorder,
    random: Random,
    mailboxes: MailboxWorkload,
    receivers: Receivers
  ) {
    this.recorder = recorder
    this.random = random
    this.mailboxes = mailboxes
    this.receivers = receivers
  }

  async sendRandom(client: string, url: string): Promise<void> {
    const one = this.random.of(this.all.slice(-recent))
    const turn = this.random.below(30)
    const mailbox = this.mailboxes.pick()
    const isNew = !mailbox.isWatched && !mailbox.isFull
    if (one === undefined || isNew || turn === 0) await this.register(client, url, mailbox)
    else if (turn === 1) await this.remove(client, url, one)
    else await this.show(client, url, one)
  }

  async show(
    client: string,
    url: string,
    { path }: WorkloadRegistration
  ): Promise<RegistrationOutput | undefined> {
    const operation = { client, resource: path, input: { kind: "show" as const } }
    const { registrations } = this.recorder.histories
    const found = await this.recorder.invoke(
      registrations,
      operation,
      { url, path, headers: asAdmin },
      (answer) =>
        byStatus<RegistrationOutput>(answer, {
          200: () => registrationOf(answer),
          404: gone,
          410: gone
        })
    )
    return found?.output
  }

  private async register(client: string, url: string, mailbox: WorkloadMailbox): Promise<void> {
    if (mailbox.isFull) return
    mailbox.isWatched = true
    const n = this.count++
    const { received, uri } = this.receivers.callback(`${mailbox.name}-${n}`, n % 2 === 1)
    const { answer, end, start } = await this.recorder.send({
      url,
      path: `${mailbox.path}/registrations`,
      method: "POST",
      body: `<registration><callback>${uri}</callback></registration>`,
      headers: asAdmin
    })
    if (answer?.status !== 201) return
    const path = pathOf(answer.headers.get("location"))
    const { cursor } = registrationOf(answer)
    this.all.push({ path, mailbox, received, after: cursor, isDeleted: false })
    this.recorder.histories.registrations.push({
      client,
      resource: path,
      input: { kind: "register", cursor },
      output: { _tag: "Done" },
      start,
      end,
      outcome: "ok"
    })
  }

  private async remove(client: string, url: string, one: WorkloadRegistration): Promise<void> {
    one.isDeleted = true
    const operation = { client, resource: one.path, input: { kind: "delete" as const } }
    const request = { url, path: one.path, method: "DELETE", headers: asAdmin }
    const { registrations } = this.recorder.histories
    await this.recorder.invoke(
      registrations,
      operation,
      request,
      (answer) => byStatus<RegistrationOutput>(answer, { 204: done, 404: gone, 410: gone })
    )
  }
}
