/** Clients that register for pushes, each registration with its own callback. */
import { type Answer, asAdmin, childOf, parseXml, pathOf } from "../e2e/client.ts"
import type { RegistrationOutput, RegistrationStatus } from "../histories/models/registration.ts"
import type { Box, Boxes } from "./boxes.ts"
import type { Inbox, Inboxes } from "./inboxes.ts"
import type { Random } from "./random.ts"
import { byStatus, type Recorder } from "./recorder.ts"

const recent = 8

const gone = (): { readonly _tag: "Gone" } => ({ _tag: "Gone" })
const done = (): { readonly _tag: "Done" } => ({ _tag: "Done" })

export interface Subscription {
  readonly path: string
  readonly box: Box
  readonly inbox: Inbox
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

export class Subscriptions {
  readonly all: Array<Subscription> = []
  private readonly recorder: Recorder
  private readonly random: Random
  private readonly boxes: Boxes
  private readonly inboxes: Inboxes
  private count = 0

  constructor(recorder: Recorder, random: Random, boxes: Boxes, inboxes: Inboxes) {
    this.recorder = recorder
    this.random = random
    this.boxes = boxes
    this.inboxes = inboxes
  }

  async act(client: string, url: string): Promise<void> {
    const one = this.random.of(this.all.slice(-recent))
    const turn = this.random.below(30)
    const box = this.boxes.pick()
    const isNew = !box.isWatched && !box.isFull
    if (one === undefined || isNew || turn === 0) await this.register(client, url, box)
    else if (turn === 1) await this.remove(client, url, one)
    else await this.show(client, url, one)
  }

  async show(
    client: string,
    url: string,
    { path }: Subscription
  ): Promise<RegistrationOutput | undefined> {
    const operation = { client, resource: path, input: { kind: "show" as const } }
    const { registrations } = this.recorder.histories
    const found = await this.recorder.operate(
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

  private async register(client: string, url: string, box: Box): Promise<void> {
    if (box.isFull) return
    box.isWatched = true
    const n = this.count++
    const { inbox, uri } = this.inboxes.callback(`${box.name}-${n}`, n % 2 === 1)
    const { answer, end, start } = await this.recorder.ask({
      url,
      path: `${box.path}/registrations`,
      method: "POST",
      body: `<registration><callback>${uri}</callback></registration>`,
      headers: asAdmin
    })
    if (answer?.status !== 201) return
    const path = pathOf(answer.headers.get("location"))
    const { cursor } = registrationOf(answer)
    this.all.push({ path, box, inbox, after: cursor, isDeleted: false })
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

  private async remove(client: string, url: string, one: Subscription): Promise<void> {
    one.isDeleted = true
    const operation = { client, resource: one.path, input: { kind: "delete" as const } }
    const request = { url, path: one.path, method: "DELETE", headers: asAdmin }
    const { registrations } = this.recorder.histories
    await this.recorder.operate(
      registrations,
      operation,
      request,
      (answer) => byStatus<RegistrationOutput>(answer, { 204: done, 404: gone, 410: gone })
    )
  }
}
