/**
 * Addresses that the service never connects to, by any feature (protocol §5, security checklist 1
 * to 4). The requester receives the same result whether or not something listens there.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { spellings } from "../actors/outbound/spellings.ts"
import { type Answer, asAdmin, expectStatus, metricValue, type Node, openMailbox, parseXml, pathOf,
  postXml, putXml, send } from "./client.ts"
import { closedPort, type GuardedListener, guardedListener } from "./faults.ts"
import { cleanUp, eventually, type Service, start } from "./process.ts"
import { closeReceivers, receiver } from "./receivers.ts"

const endsWithinMs = 120_000
const notAllowed =
  "the address is not allowed: it is not public, and OUTBOUND_ALLOW does not permit it"
/** Allows outbound requests to this address only. */
const stepping = "127.0.0.2"

let strict: Service
let open: Service
/** A port with a listener on every address of this machine, and a port without one. */
let listener: GuardedListener
let closed: number

beforeAll(async () => {
  strict = await start()
  open = await start({ env: { OUTBOUND_ALLOW: `${stepping}/32` } })
  listener = await guardedListener()
  closed = await closedPort()
})

afterAll(() => {
  listener.close()
  closeReceivers()
  cleanUp()
})

const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

/** Every forbidden URI, with this port. */
const forbidden = (port: number): ReadonlyArray<string> =>
  spellings.flatMap((host) => [`http://${host}:${port}/x`, `https://${host}:${port}/x`])

/** The text without the parts that depend on the port. */
const withoutPorts = (text: string): string =>
  text.replaceAll(String(listener.port), "PORT").replaceAll(String(closed), "PORT")
    .replaceAll(/\b\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME")
    .replaceAll(/[A-Za-z0-9_-]{22,}/g, "ID")

const get = (service: Service, path: string) => send(service.url, path, { headers: asAdmin })

/** Sends to all of them; returns the status of each recipient when all have ended. */
const relayed = async (
  service: Service,
  to: ReadonlyArray<string>
): Promise<{ readonly recipients: ReadonlyArray<Node["attributes"]>; readonly text: string }> => {
  const document = `<notification>${to.map((uri) => `<to>${escaped(uri)}</to>`).join("")}<item>` +
    "<description>x</description><url>http://sender.test/x</url></item></notification>"
  const queued = expectStatus(
    await postXml(service.url, "/outgoing/admin", document, asAdmin),
    202
  )
  const path = pathOf(queued.headers.get("location"))
  return eventually(endsWithinMs, "all recipients have ended", async () => {
    const { text } = expectStatus(await get(service, path), 200)
    const response = parseXml(text)
    return response.attributes["status"] === "waiting"
      ? undefined
      : {
        recipients: response.children.map(({ attributes }) => attributes),
        text: withoutPorts(text)
      }
  })
}

/** The result of a verification, as the creator of the registration sees it. */
const verified = async (service: Service, made: Answer): Promise<string> => {
  if (made.status >= 400) return withoutPorts(`${made.status} ${made.text}`)
  const path = pathOf(made.headers.get("location"))
  return eventually(endsWithinMs, `${path} is verified`, async () => {
    const response = await get(service, path)
    if (response.status !== 200) return withoutPorts(`${response.status} ${response.text}`)
    return response.text.includes("<problem>") ? withoutPorts(response.text) : undefined
  })
}

const refusals = (service: Service): Promise<number> =>
  metricValue(service.url, "restante_delivery_attempts_total{outcome=\"permanent_failure\"")

/** Deposits one notification for each URI into a mailbox with these settings. */
const depositAll = async (
  service: Service,
  name: string,
  settings: string,
  uris: ReadonlyArray<string>
): Promise<string> => {
  const document = `<mailbox><name>${name}</name>${settings}</mailbox>`
  expectStatus(await postXml(service.url, "/mailboxes", document, asAdmin), 201)
  for (const uri of uris) {
    const deposit = `<notification><item><description>x</description>` +
      `<url>${escaped(uri)}</url></item></notification>`
    // As an account: requests that anonymous deposits cause are few.
    expectStatus(await postXml(service.url, `/mailboxes/${name}`, deposit, asAdmin), 202)
  }
  return `/mailboxes/${name}`
}

describe("without OUTBOUND_ALLOW nothing on this machine is reached", () => {
  it("as a recipient", async () => {
    const [there, away] = [
      await relayed(strict, forbidden(listener.port)),
      await relayed(strict, forbidden(closed))
    ]
    // Some spellings are the same URI, so the notification has it once.
    expect(there.recipients.length).toBeGreaterThan(30)
    for (const recipient of there.recipients) {
      expect(recipient, recipient["href"]).toMatchObject({ status: "failed", problem: notAllowed })
      expect(recipient["code"]).toBeUndefined()
    }
    expect(there.text).toBe(away.text)
    expect(listener.hits()).toBe(0)
  })

  it.each(["native", "websub"])("as a callback (%s)", async (form) => {
    const outcomes = async (port: number): Promise<ReadonlyArray<string>> => {
      const { path } = await openMailbox(strict.url, `${form}-${port}`)
      const topic = `http://post.test${path}`
      const made: Array<Answer> = []
      for (const uri of forbidden(port)) {
        const fields = { "hub.mode": "subscribe", "hub.topic": topic, "hub.callback": uri }
        made.push(
          form === "native"
            ? await postXml(
              strict.url,
              `${path}/registrations`,
              `<registration><callback>${uri}</callback></registration>`,
              asAdmin
            )
            : await send(strict.url, `${path}/registrations`, {
              method: "POST",
              headers: { ...asAdmin, "content-type": "application/x-www-form-urlencoded" },
              body: new URLSearchParams(fields).toString()
            })
        )
      }
      return Promise.all(made.map((one) => verified(strict, one)))
    }
    const [there, away] = [await outcomes(listener.port), await outcomes(closed)]
    expect(there.filter((text) => text.includes(notAllowed)).length).toBeGreaterThan(60)
    expect(there.join("\n").replaceAll(`${form}-PORT`, "")).toBe(
      away.join("\n").replaceAll(`${form}-PORT`, "")
    )
    expect(listener.hits()).toBe(0)
  })

  it("as a message to fetch, or to send a receipt to", async () => {
    const listed = async (settings: string, each: number, port: number): Promise<string> => {
      const name = `${/<(\w+)>/.exec(settings)?.[1]}-${port}`
      // Each URI is another one: what one has shown of receipts is remembered for a day.
      const uris = forbidden(port).map((uri) => `${uri}?${name.replace(/-.*/, "")}`)
      const before = await refusals(strict)
      const path = await depositAll(strict, name, settings, uris)
      await eventually(
        endsWithinMs,
        `${name} has tried all`,
        async () => await refusals(strict) >= before + each * uris.length ? true : undefined
      )
      const { text } = expectStatus(await get(strict, `${path}?limit=1000`), 200)
      expect(text).not.toContain("<cached")
      return withoutPorts(text)
    }
    // A permanently failed fetch is reported by a receipt to the same address.
    const doors = [["<fetch>eager</fetch>", 2], ["<receipts>received</receipts>", 1]] as const
    for (const [settings, each] of doors) {
      expect(await listed(settings, each, listener.port)).toBe(await listed(settings, each, closed))
    }
    expect(listener.hits()).toBe(0)
  })

  it("as an answer of a session", async () => {
    const begun = await postXml(strict.url, "/sessions", `<answer continue="true">go</answer>`)
    const path = pathOf(expectStatus(begun, 201).headers.get("location"))
    const put = async (uri: string): Promise<string> => {
      const answer = await putXml(strict.url, `${path}/name`, `<answer href="${escaped(uri)}"/>`)
      return withoutPorts(expectStatus(answer, 422).text)
    }
    const away = forbidden(closed)
    for (const [at, uri] of forbidden(listener.port).entries()) {
      expect(await put(uri), uri).toBe(await put(away[at] ?? ""))
    }
    expect(listener.hits()).toBe(0)
  })
})

/** An allowed receiver that redirects to the URI in its query. */
const leading = (): Promise<string> =>
  receiver(({ method, path }, response) => {
    const query = new URL(path, "http://x.test").searchParams
    const target = query.get("to") ?? ""
    const way = query.get("by")
    if (way === "redirect") response.writeHead(307, { location: target }).end()
    else if (method === "POST") response.writeHead(405).end()
    else if (way === "link") response.writeHead(200, { link: `<${target}>; rel="mailbox"` }).end()
    else {
      response.writeHead(200, { "content-type": "text/html" })
        .end(`<!doctype html><link rel=mailbox href="${target}">`)
    }
  }, stepping)

describe("a place that may be reached leads to none that may not", () => {
  const through = (origin: string, by: string, port: number): ReadonlyArray<string> => {
    // A URI in a header is ASCII. Some spellings are the same URI.
    const targets = new Set(forbidden(port).map((uri) => new URL(uri).href))
    return [...targets].map((uri) => `${origin}/?by=${by}&to=${encodeURIComponent(uri)}`)
  }

  it.each(["redirect", "link", "html"])("by %s of a recipient", async (by) => {
    const origin = await leading()
    const [there, away] = [
      await relayed(open, through(origin, by, listener.port)),
      await relayed(open, through(origin, by, closed))
    ]
    for (const recipient of there.recipients) {
      expect(recipient, recipient["href"]).toMatchObject({ status: "failed", problem: notAllowed })
    }
    expect(there.text).toBe(away.text)
    expect(listener.hits()).toBe(0)
  })

  it("by redirect of a callback, of a message or of an answer", async () => {
    const origin = await leading()
    const uris = through(origin, "redirect", listener.port)
    const { path } = await openMailbox(open.url, "led")
    for (const uri of uris) {
      const document = `<registration><callback>${escaped(uri)}</callback></registration>`
      const made = await postXml(open.url, `${path}/registrations`, document, asAdmin)
      // WebSub §5.3: a verification follows no redirect, wherever it leads.
      expect(await verified(open, expectStatus(made, 201)), uri)
        .toContain("answered 307, a redirect that is not followed")
    }
    const before = await refusals(open)
    await depositAll(open, "fetching", "<fetch>eager</fetch>", uris)
    await eventually(
      endsWithinMs,
      "all are fetched and reported",
      async () => await refusals(open) >= before + 2 * uris.length ? true : undefined
    )
    const begun = await postXml(open.url, "/sessions", `<answer continue="true">go</answer>`)
    const session = pathOf(expectStatus(begun, 201).headers.get("location"))
    for (const uri of uris) {
      const answer = `<answer href="${escaped(uri)}"/>`
      const put = await putXml(open.url, `${session}/name`, answer, asAdmin)
      expect(expectStatus(put, 422).text, uri).toContain(notAllowed)
    }
    expect(listener.hits()).toBe(0)
  })
})

it("serves as before, without an error in the log", async () => {
  for (const service of [strict, open]) {
    expectStatus(await send(service.url, "/readyz"), 200)
    expect((await service.stop()).code).toBe(0)
    expect(service.output).not.toMatch(/"level":"(error|warn)|ERROR|WARN/i)
  }
  const seen = await fetch(`http://127.0.0.1:${listener.port}`)
  expect(seen.status, "the listener can be reached").toBe(204)
  expect(listener.hits()).toBe(1)
})
