/**
 * The process dies at each step of a message: decided, committed, replied, performed. Afterwards
 * uncommitted data is absent, and committed data is complete and not duplicated. A request repeated
 * with its Idempotency-Key creates one resource. The next process completes unfinished effects.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Answer, asAdmin, basic, childOf, expectStatus, linkOf, listMailbox, type Mailbox,
  mailboxOf, notification, openMailbox, parseXml, pathOf, postXml, putXml, send,
  sha256 } from "./client.ts"
import { blobFiles, cleanUp, command, eventually, type Service, start,
  temporaryFolder } from "./process.ts"

/** A crash reserves an idempotency key, and delays blob garbage collection, for one minute. */
const laterMs = 80_000
const large = 100_000

const dataDir = temporaryFolder()
type Step = "decided" | "committed" | "replied"
const steps: ReadonlyArray<Step> = ["decided", "committed", "replied"]

/** Checks to run after that minute. */
const later: Array<{ readonly name: string; readonly check: (base: string) => Promise<void> }> = []

beforeAll(async () => {
  const first = await start({ dataDir })
  await first.stop()
})
afterAll(cleanUp)

/** Runs `act` on a service that dies meanwhile, then `verify` on its successor. */
const crash = async (
  failpoint: string,
  act: (base: string) => Promise<unknown>,
  verify?: (base: string) => Promise<void>
): Promise<void> => {
  const doomed = await start({ dataDir, env: { RESTANTE_FAILPOINT: failpoint } })
  await Promise.allSettled([act(doomed.url)])
  expect((await doomed.end(5_000)).signal).toBe("SIGKILL")
  if (verify === undefined) return
  const service = await start({ dataDir })
  try {
    await verify(service.url)
  } finally {
    await service.kill()
  }
}

/** The answer, or undefined when the process died first. */
const tried = (request: Promise<Answer>): Promise<Answer | undefined> =>
  request.catch(() => undefined)

const keyed = (key: string) => ({ ...asAdmin, "idempotency-key": `"${key}"` })

/** Repeats a request until its key is free, and once more: both responses must be the same. */
const repeated = async (base: string, path: string, body: string, key: string): Promise<Answer> => {
  const answer = await eventually(laterMs, `${key} is free`, async () => {
    const one = await postXml(base, path, body, keyed(key))
    return one.status === 409 ? undefined : one
  }, 500)
  expectStatus(answer, 201, 202)
  const again = await postXml(base, path, body, keyed(key))
  expect(again.status).toBe(answer.status)
  expect(again.headers.get("location")).toBe(answer.headers.get("location"))
  expect(again.text).toBe(answer.text)
  return answer
}

/** Paths of the members of a collection. */
const pathsIn = async (base: string, collection: string): Promise<ReadonlyArray<string>> => {
  const page = await send(base, `${collection}?limit=1000`, { headers: asAdmin })
  const entries = parseXml(expectStatus(page, 200).text).children
  return entries.map(({ attributes }) => pathOf(attributes["href"] ?? null))
}

describe.each(steps)("dying when a message is %s", (step: Step) => {
  it("preserves a mailbox's notifications", async () => {
    let mailbox: Mailbox | undefined
    const accepted: Array<string> = []
    const act = async (base: string) => {
      mailbox = await openMailbox(base, `deposits-${step}`)
      for (let n = 1; n <= 5; n += 1) {
        const answer = await postXml(base, mailbox.path, notification(`n${n}`))
        accepted.push(pathOf(expectStatus(answer, 202).headers.get("location")))
      }
    }
    // The creation is the first step of the kind, the fourth deposit the fifth.
    await crash(`${step}:mailbox:5`, act, async (base) => {
      if (mailbox === undefined) throw new Error("the mailbox was not opened")
      const listed = await listMailbox(base, mailbox)
      expect(accepted.length).toBeGreaterThanOrEqual(3)
      expect(listed.map(({ path }) => path).slice(0, accepted.length)).toEqual(accepted)
      const there = step === "decided" ? ["n1", "n2", "n3"] : ["n1", "n2", "n3", "n4"]
      expect(listed.map(({ description }) => description)).toEqual(there)
      const again = expectStatus(await postXml(base, mailbox.path, notification("n4")), 202)
      const after = await listMailbox(base, mailbox)
      expect(after.map(({ description }) => description)).toEqual(["n1", "n2", "n3", "n4"])
      expect(after[3]?.path).toBe(pathOf(again.headers.get("location")))
    })
  })

  it("creates one mailbox for a repeated request", async () => {
    const name = `once-${step}`
    const document = `<mailbox><name>${name}</name></mailbox>`
    let first: Answer | undefined
    const act = async (base: string) => {
      first = await tried(postXml(base, "/mailboxes", document, keyed(name)))
    }
    await crash(`${step}:mailbox:1`, act, async (base) => {
      const there = (await pathsIn(base, "/mailboxes")).includes(`/mailboxes/${name}`)
      expect(there).toBe(step !== "decided")
    })
    later.push({
      name,
      check: async (base) => {
        const answer = await repeated(base, "/mailboxes", document, name)
        if (first !== undefined) expect(answer.text).toBe(first.text)
        const mailbox = mailboxOf(answer)
        expect(mailbox.path).toBe(`/mailboxes/${name}`)
        expectStatus(await postXml(base, mailbox.path, notification("hello")), 202)
        expect(await listMailbox(base, mailbox)).toHaveLength(1)
        expectStatus(await send(base, mailbox.shared), 200)
      }
    })
  })

  it("preserves a session's answers", async () => {
    let path = ""
    const act = async (base: string) => {
      const begun = await postXml(base, "/sessions", `<answer continue="true">go</answer>`)
      path = pathOf(expectStatus(begun, 201).headers.get("location"))
      expectStatus(await putXml(base, `${path}/name`, "<answer>Robin</answer>"), 201)
      await putXml(base, `${path}/quest`, "<answer>the Grail</answer>")
    }
    await crash(`${step}:session:3`, act, async (base) => {
      expect(parseXml((await send(base, `${path}/name`)).text).text).toBe("Robin")
      const quest = await send(base, `${path}/quest`)
      const challenge = parseXml(expectStatus(await send(base, path), 200).text)
      const next = step === "decided" ? "quest" : "hard_question"
      expect(childOf(challenge, "uri").text).toBe(`${path}/${next}`)
      expect(quest.status).toBe(step === "decided" ? 404 : 200)
      const put = await putXml(base, `${path}/quest`, "<answer>the Grail</answer>")
      expect(put.status).toBe(step === "decided" ? 201 : 200)
    })
  })

  it("begins one session for a repeated request", async () => {
    const key = `session-${step}`
    const document = `<answer continue="true">go</answer>`
    let before: ReadonlyArray<string> = []
    const act = async (base: string) => {
      before = await pathsIn(base, "/sessions")
      await postXml(base, "/sessions", document, keyed(key))
    }
    let after: ReadonlyArray<string> = []
    await crash(`${step}:session:1`, act, async (base) => {
      after = (await pathsIn(base, "/sessions")).filter((path) => !before.includes(path))
      expect(after).toHaveLength(step === "decided" ? 0 : 1)
    })
    later.push({
      name: key,
      check: async (base) => {
        const answer = await repeated(base, "/sessions", document, key)
        const path = pathOf(answer.headers.get("location"))
        expect((await pathsIn(base, "/sessions")).filter((one) => one === path)).toHaveLength(1)
        if (after.length > 0) expect(after).toEqual([path])
      }
    })
  })

  it("creates one account for a repeated request", async () => {
    const name = `account-${step}`
    const document = `<account><name>${name}</name></account>`
    const act = (base: string) => postXml(base, "/accounts", document, keyed(name))
    await crash(`${step}:account:1`, act, async (base) => {
      const { status } = await send(base, `/accounts/${name}`, { headers: asAdmin })
      expect(status).toBe(step === "decided" ? 404 : 200)
    })
    later.push({
      name,
      check: async (base) => {
        const { text } = await repeated(base, "/accounts", document, name)
        const token = childOf(parseXml(text), "token").text
        const headers = { authorization: basic(name, token) }
        expectStatus(await send(base, `/accounts/${name}`, { headers }), 200)
      }
    })
  })

  it("publishes once for a repeated request, small and large", async () => {
    for (const length of [100, large]) {
      const key = `content-${step}-${length}`
      const body = Buffer.alloc(length, key).toString()
      const act = (base: string) => postXml(base, "/content", body, keyed(key))
      // The crash of the small one left an orphan; garbage collection asks its actor first.
      const message = step === "decided" && length === large ? 2 : 1
      await crash(`${step}:content:${message}`, act)
      later.push({
        name: key,
        check: async (base) => {
          const answer = await repeated(base, "/content", body, key)
          const got = await send(base, pathOf(answer.headers.get("location")))
          expect(sha256(expectStatus(got, 200).bytes)).toBe(sha256(Buffer.from(body)))
        }
      })
    }
  })

  it.each([1, 2])("answers a repeated request from the memory of its key (step %i)", async (n) => {
    const name = `key-${step}-${n}`
    const document = `<mailbox><name>${name}</name></mailbox>`
    const act = (base: string) => postXml(base, "/mailboxes", document, keyed(name))
    await crash(`${step}:idempotency:${n}`, act, async (base) => {
      const there = (await pathsIn(base, "/mailboxes")).includes(`/mailboxes/${name}`)
      expect(there).toBe(n === 2)
      if (n === 2 && step !== "decided") {
        const answer = expectStatus(await act(base), 201)
        expect(mailboxOf(answer).path).toBe(`/mailboxes/${name}`)
      }
    })
    later.push({
      name,
      check: async (base) => {
        const mailbox = mailboxOf(await repeated(base, "/mailboxes", document, name))
        expect(await listMailbox(base, mailbox)).toEqual([])
      }
    })
  })
})

describe.each([...steps, "performed"])("dying when an overwriting is %s", (step) => {
  it("has the old or the new body, and removes the other", async () => {
    const [before, after] = [Buffer.alloc(large, `old ${step}`), Buffer.alloc(large, `new ${step}`)]
    let path = ""
    const act = async (base: string) => {
      const published = await send(base, "/content", { method: "POST", body: before })
      path = pathOf(expectStatus(published, 202).headers.get("location"))
      await send(base, linkOf(published, "edit"), { method: "PUT", body: after })
    }
    // Publishing is the first decision, and counts its bytes.
    await crash(`${step}:content:2`, act, async (base) => {
      const got = expectStatus(await send(base, path), 200)
      expect(sha256(got.bytes)).toBe(sha256(step === "decided" ? before : after))
    })
    const id = path.slice("/content/".length)
    later.push({
      name: `the other body of ${path}`,
      check: async (base) => {
        const files = () => blobFiles(dataDir).filter((file) => file.includes(`${id}=`))
        await eventually(
          laterMs,
          `one body is left of ${files().join()}`,
          () => files().length === 1 ? true : undefined,
          500
        )
        expectStatus(await send(base, path), 200)
      }
    })
  })
})

describe("a minute later", () => {
  let service: Service
  it("repeats every keyed request once, and leaves no orphan blob", async () => {
    service = await start({ dataDir })
    const wrong: Array<string> = []
    for (const { check, name } of later) {
      await check(service.url).catch((error: unknown) => wrong.push(`${name}: ${String(error)}`))
    }
    expect(wrong).toEqual([])
    expect((await service.stop()).code).toBe(0)
  })

  it("leaves a valid store", async () => {
    const checked = await command(["check", "--data-dir", dataDir])
    expect(checked.output).toContain(`${dataDir}: ok`)
    expect(checked.code).toBe(0)
  })
})
