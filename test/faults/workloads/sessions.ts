/** Clients of sessions. */
import { type Answer, parseXml, pathOf } from "../../e2e/client.ts"
import { type SessionOutput, type SessionStep,
  sessionSteps } from "../../histories/models/session.ts"
import type { Random } from "../random.ts"
import { byStatus, gone, type Recorder } from "../recorder.ts"

/** Recent resources that clients read again. */
const recent = 8

const sessionOutput = (answer: Answer): SessionOutput =>
  byStatus<SessionOutput>(answer, {
    200: () => {
      const challenge = parseXml(answer.text)
      const textAt = (name: string) =>
        challenge.children.find((child) => child.name === name)?.text ?? ""
      const step = sessionSteps.find((one) => textAt("uri").endsWith(`/${one}`))
      const end = textAt("p") === "Right. Off you go." ? "crossed" : "cast"
      const links = sessionSteps.filter((one) =>
        challenge.children.some(({ attributes, name }) => name === one && attributes["href"])
      )
      const answered = step === undefined ? sessionSteps.length : sessionSteps.indexOf(step)
      if (links.length !== answered) throw new Error(`links to ${links.join(", ")} only`)
      return { _tag: "Shown", status: step ?? end }
    },
    404: gone,
    410: gone
  })

const answerOutput = (answer: Answer): SessionOutput =>
  byStatus<SessionOutput>(answer, {
    201: () => ({ _tag: "Recorded" }),
    200: () => ({ _tag: "Overwritten" }),
    406: () => ({ _tag: "Cast" }),
    409: () => ({ _tag: "TooEarly" }),
    405: () => ({ _tag: "Over" }),
    404: gone,
    410: gone
  })

export class SessionWorkload {
  readonly paths: Array<string> = []
  private readonly recorder: Recorder
  private readonly random: Random
  private count = 0

  constructor(recorder: Recorder, random: Random) {
    this.recorder = recorder
    this.random = random
  }

  /** Runs a whole session, with each step at another node. */
  async runSession(client: string, anywhere: () => string): Promise<void> {
    const start = performance.now()
    const body = `<answer continue="true">I am not afraid.</answer>`
    const begun = await this.recorder.send({
      url: anywhere(),
      path: "/sessions",
      method: "POST",
      body
    })
    if (begun.answer?.status !== 201) return
    const path = pathOf(begun.answer.headers.get("location"))
    this.recorder.histories.sessions.push({
      client,
      resource: path,
      input: { kind: "begin" },
      output: { _tag: "Begun" },
      start,
      end: begun.end,
      outcome: "ok"
    })
    this.paths.push(path)
    await this.answer(client, anywhere(), path, "name")
    if (this.random.below(3) === 0) await this.answer(client, anywhere(), path, "hard_question")
    // Two concurrent requests, one of which overwrites the other.
    if (this.random.below(3) === 0) {
      await Promise.all([
        this.answer(client, anywhere(), path, "name"),
        this.answer(`${client}b`, anywhere(), path, "quest")
      ])
    } else await this.answer(client, anywhere(), path, "quest")
    await this.show(client, anywhere(), path)
    if (this.random.below(5) > 0) {
      await Promise.all([
        this.answer(client, anywhere(), path, "hard_question"),
        this.answer(`${client}b`, anywhere(), path, "quest")
      ])
    }
    if (this.random.below(6) === 0) await this.remove(client, anywhere(), path)
  }

  /** Reads one of the last sessions, of any client. */
  async readRecent(client: string, url: string): Promise<void> {
    const path = this.random.of(this.paths.slice(-recent))
    if (path !== undefined) await this.show(client, url, path)
  }

  async show(client: string, url: string, resource: string): Promise<void> {
    const { histories } = this.recorder
    const operation = { client, resource, input: { kind: "show" as const } }
    await this.recorder.invoke(
      histories.sessions,
      operation,
      { url, path: resource },
      sessionOutput
    )
    const step = this.random.of(sessionSteps) ?? "name"
    const input = { kind: "recorded" as const, step }
    const path = `${resource}/${step}`
    await this.recorder.invoke(
      histories.sessions,
      { client, resource, input },
      { url, path },
      (answer) =>
        byStatus<SessionOutput>(answer, {
          200: () => ({ _tag: "Answer", text: parseXml(answer.text).text }),
          404: gone,
          410: gone
        })
    )
  }

  private async answer(
    client: string,
    url: string,
    resource: string,
    step: SessionStep
  ): Promise<void> {
    const colours = ["blue", "blue. No, yellow"]
    const text = step === "hard_question"
      ? this.random.of(colours) ?? ""
      : `Galahad ${this.count++}`
    const input = { kind: "answer" as const, step, text }
    const body = `<answer>${text}</answer>`
    const request = { url, path: `${resource}/${step}`, method: "PUT", body }
    const { sessions } = this.recorder.histories
    await this.recorder.invoke(sessions, { client, resource, input }, request, answerOutput)
  }

  private async remove(client: string, url: string, resource: string): Promise<void> {
    const request = { url, path: resource, method: "DELETE" }
    const operation = { client, resource, input: { kind: "delete" as const } }
    await this.recorder.invoke(
      this.recorder.histories.sessions,
      operation,
      request,
      (answer) =>
        byStatus<SessionOutput>(answer, {
          204: () => ({ _tag: "Deleted" }),
          404: gone,
          410: gone
        })
    )
  }
}
