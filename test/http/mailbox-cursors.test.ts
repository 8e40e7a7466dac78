/**
 * A reader that continues from a position which the mailbox does not know, or from one whose next
 * notifications were removed, gets a clear answer and a way on (protocol §1.2).
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { formatCursor } from "../../actors/mailbox/index.ts"
import { childText, descriptions, type Mailboxes, owner, startMailboxes,
  timeOf } from "./mailbox-harness.ts"
import { childOf, parseText } from "../../http/formats/xml/index.ts"
import type { Format } from "../../http/formats/representation-uris.ts"
import { linked } from "./ldn-harness.ts"
import { stream as openStream, type StreamEvent } from "./streams.ts"

let service: Mailboxes
let created = 0

beforeAll(async () => {
  service = await startMailboxes()
})

afterAll(() => service.close())

const get = (href: string, headers: Readonly<Record<string, string>> = {}) =>
  service.send("GET", href, { basic: owner, headers })

const stream = (href: string, headers: Readonly<Record<string, string>> = {}) =>
  openStream(href, owner, headers)

/** A mailbox with these notifications: its URI, theirs, and the cursor after each of them. */
const fill = async (...texts: ReadonlyArray<string>) => {
  const { href, shared } = await service.open(`cursors-${++created}`)
  const hrefs: Array<string> = []
  const cursors = [timeOf(await get(href))]
  for (const text of texts) {
    hrefs.push((await service.deposit(href, text)).header("location"))
    cursors.push(timeOf(await get(href)))
  }
  return { href, shared, hrefs, cursors }
}

const remove = async (href: string) => {
  expect((await service.send("DELETE", href, { basic: owner })).status).toBe(204)
}

const cabinetOf = (...hrefs: ReadonlyArray<string>): string =>
  `<cabinet>${hrefs.map((href) => `<mailbox href="${href}"/>`).join("")}</cabinet>`

/** A cabinet of these mailboxes: its URI. */
const gather = async (...hrefs: ReadonlyArray<string>): Promise<string> =>
  (await service.send("POST", "/cabinets", { basic: owner, body: cabinetOf(...hrefs) }))
    .header("location")

/** Positions that a mailbox with two notifications has not given out. */
const unknownPositions = async () => {
  const other = await fill("o1", "o2", "o3")
  return {
    "of another mailbox": other.cursors[2] ?? "",
    "from the future": formatCursor(Date.now(), 999),
    "of the head, but another time": formatCursor(Date.UTC(2020, 0, 1), 2)
  }
}

/** The three parts of the problem: what happened, to what, and what to do. */
const expectUnknown = async (
  answer: Awaited<ReturnType<typeof get>>,
  name: string,
  first = "?"
) => {
  expect([answer.status, answer.child("type")]).toEqual([
    400,
    expect.stringMatching(/\/problems\/unknown-cursor$/)
  ])
  expect(answer.child("detail")).toMatch(
    new RegExp(`^${name} is no position of this .*restore; read without ${name}`)
  )
  expect(linked(answer, "first")).toEqual([first])
}

describe("an unknown position", () => {
  it("is 400 for a page and a long poll, at once, with a link to the first page", async () => {
    const { href } = await fill("one", "two")
    for (const since of Object.values(await unknownPositions())) {
      await expectUnknown(await get(`${href}?since=${since}`), "since")
      await expectUnknown(await get(`${href}?since=${since}`, { prefer: "wait=50" }), "since")
    }
    const first = await get(new URL("?", `${href}?since=x`).href)
    expect(descriptions(first)).toEqual(["one", "two"])
    await expectUnknown(await get(`${href}?before=999`), "before")
  })

  it("is 400 for a feed too, whose link to the first page is a feed", async () => {
    const { cursors, href } = await fill("one", "two")
    const cabinet = await gather(href)
    const other = timeOf(await get(await gather(href)))
    for (const since of Object.values(await unknownPositions())) {
      await expectUnknown(await get(`${href}?format=atom&since=${since}`), "since", "?format=atom")
    }
    await expectUnknown(await get(`${href}?format=rss&before=999`), "before", "?format=rss")
    const foreign = await get(`${cabinet}?format=atom&since=${other}`)
    await expectUnknown(foreign, "since", "?format=atom")
    expect((await get(`${href}?format=atom&since=${cursors[1]}`)).status).toBe(200)
  })

  it("is not taken from a cached answer for the same number", async () => {
    const { cursors, href } = await fill("one", "two")
    for (let n = 0; n < 2; n++) {
      expect(descriptions(await get(`${href}?since=${cursors[1]}`))).toEqual(["two"])
    }
    await expectUnknown(
      await get(`${href}?since=${formatCursor(Date.UTC(2020, 0, 1), 1)}`),
      "since"
    )
  })

  it.each([["since=x"], ["before=x"], ["before=0"]])("400 for %s, with a way on", async (query) => {
    const { href } = await fill()
    const answer = await get(`${href}?${query}`)
    expect([answer.status, answer.child("type")]).toEqual([
      400,
      expect.stringMatching(/\/problems\/malformed$/)
    ])
    expect(answer.child("detail")).toContain("read without")
    expect(answer.header("link")).toContain("<?>; rel=\"first\"")
  })

  it("does not show the secret of a shared URI", async () => {
    const { shared } = await fill("one")
    const answer = await get(`${shared}?since=${formatCursor(0, 999)}`)
    await expectUnknown(answer, "since")
    const secret = shared.slice(shared.indexOf("~") + 1)
    expect(answer.text + answer.header("link")).not.toContain(secret)
  })

  const positionOf = (event: StreamEvent | undefined) => {
    const parsed = parseText(event?.data ?? "")
    if (!parsed.ok) throw new Error(parsed.fault.detail)
    expect(event?.event).toBe("position")
    expect(parsed.value.attributes["time"]).toBe(event?.id)
    expect(childText(parsed.value, "detail")).toContain("the stream begins")
    return parsed.value.attributes["state"]
  }

  it("begins a stream with an event, then with all that the mailbox has", async () => {
    const { href, hrefs } = await fill("one", "two", "three")
    await remove(hrefs[0] ?? "")
    const unknown = { ...await unknownPositions(), "no position": "x" }
    for (const [name, id] of Object.entries(unknown)) {
      const live = await stream(href, { "last-event-id": id })
      expect([live.response.status, name]).toEqual([200, name])
      const position = await live.next()
      expect(positionOf(position)).toBe("unknown")
      for (const text of ["two", "three"]) expect((await live.next())?.data).toContain(text)
      live.close()
      // A reconnecting EventSource sends the id of the event: the stream does not report it again.
      const resumed = await stream(href, { "last-event-id": position?.id ?? "" })
      expect((await resumed.next())?.event).toBe("notification")
      resumed.close()
    }
    const queried = await stream(`${href}?since=${unknown["from the future"]}`)
    expect(positionOf(await queried.next())).toBe("unknown")
    queried.close()
  })

  it("that is discarded is reported, and the answer goes on with what is kept", async () => {
    const { cursors, href, hrefs } = await fill("one", "two", "three", "four")
    for (const one of hrefs.slice(0, 3)) await remove(one)
    const page = await get(`${href}?since=${cursors[1]}`)
    expect([page.xml.attributes["discarded"], descriptions(page)]).toEqual(["true", ["four"]])
    const json = await service.send("GET", `${href}?since=${cursors[1]}`, {
      basic: owner,
      accept: "application/json"
    })
    expect(JSON.parse(json.text)).toMatchObject({ discarded: "true" })
    // The position right before the first kept notification has lost nothing.
    const kept = await get(`${href}?since=${cursors[3]}`)
    expect([kept.xml.attributes["discarded"], descriptions(kept)]).toEqual([undefined, ["four"]])
    const live = await stream(href, { "last-event-id": cursors[1] ?? "" })
    expect(live.response.headers.get("discarded")).toBe("true")
    expect(positionOf(await live.next())).toBe("discarded")
    expect((await live.next())?.data).toContain("four")
    live.close()
    // A long poll reports it at once, although no notification follows.
    await remove(hrefs[3] ?? "")
    const polled = await get(`${href}?since=${cursors[1]}`, { prefer: "wait=50" })
    expect([polled.xml.attributes["discarded"], descriptions(polled)]).toEqual(["true", []])
    expect(polled.headers.get("discarded")).toBe("true")
    const again = await get(`${href}?since=${timeOf(polled)}`)
    expect(again.xml.attributes["discarded"]).toBeUndefined()
  })
})

/** How the body of each format reports it; a list of URIs has only the field and the link. */
const discardedSigns: Readonly<Record<Format, RegExp | undefined>> = {
  xml: / discarded="true"/,
  json: /"discarded":"true"/,
  html: /Earlier notifications .*have been removed/,
  text: /^ *discarded: true$/m,
  atom: /<subtitle>Earlier notifications .*have been removed\.<\/subtitle>/,
  rss: /<description>[^<]*Earlier notifications .*have been removed\.<\/description>/,
  jsonld: undefined
}

describe.each(["mailbox", "cabinet"] as const)("a discarded position of a %s", (kind) => {
  // A cabinet has no JSON-LD.
  const formats = kind === "mailbox"
    ? ["xml", "json", "html", "text", "atom", "rss", "jsonld"] as const
    : ["xml", "json", "html", "text", "atom", "rss"] as const

  it.each(formats)("is reported as %s, with a link to the first page", async (format) => {
    const { cursors, href, hrefs } = await fill("one", "two", "three", "four", "five")
    const listing = kind === "mailbox" ? href : await gather(href)
    const cursor = kind === "mailbox" ? cursors[1] : timeOf(await get(`${listing}?limit=1`))
    const page = (query: string) => get(`${listing}?limit=7&format=${format}${query}`)
    expect((await page(`&since=${cursor}`)).headers.has("discarded")).toBe(false)
    for (const one of hrefs.slice(0, 3)) await remove(one)
    const answer = await page(`&since=${cursor}`)
    expect([answer.status, answer.headers.get("discarded")]).toEqual([200, "true"])
    const sign = discardedSigns[format]
    if (sign !== undefined) expect(answer.text).toMatch(sign)
    expect(answer.text).toContain(format === "jsonld" ? hrefs[3] : "four")
    const first = `${listing}?limit=7&format=${format}`
    expect(linked(answer, "first")).toEqual([first])
    const isFeed = format === "atom" || format === "rss"
    if (isFeed) {
      expect(answer.text).toContain(`link rel="first" href="${first.replace("&", "&amp;")}"`
        .replaceAll("&amp;", format === "rss" ? "&#x26;" : "&amp;"))
    }
    const same = await get(`${listing}?limit=7&format=${format}&since=${cursor}`, {
      "if-none-match": answer.etag
    })
    expect([same.status, same.headers.get("discarded")]).toEqual([304, "true"])
    // Neither the first page nor the position right before what is kept has lost anything.
    const kept = kind === "mailbox" ? cursors[3] : timeOf(await get(`${listing}?limit=1`))
    for (const query of ["", `&since=${kept}`]) {
      const whole = await page(query)
      expect([whole.status, whole.headers.has("discarded")]).toEqual([200, false])
      expect(linked(whole, "first")).toEqual([])
      if (sign !== undefined) expect(whole.text).not.toMatch(sign)
    }
  })
})

it("names the mailboxes of a cabinet's page that have lost notifications", async () => {
  const [lost, whole] = [await fill("one", "two"), await fill("three")]
  const cabinet = await gather(lost.href, whole.href)
  const since = timeOf(await get(`${cabinet}?limit=1`))
  for (const one of lost.hrefs) await remove(one)
  const page = await service.send("GET", `${cabinet}?since=${since}`, {
    basic: owner,
    accept: "text/html"
  })
  const lines = page.text.split("\n").filter((line) => line.includes("notifications removed"))
  expect(lines).toEqual([expect.stringContaining(lost.href)])
})

it("reports what a cabinet lost of a mailbox that was empty, and not of a new one", async () => {
  const [empty, added] = [await fill(), await fill("before")]
  const cabinet = await gather(empty.href)
  const since = timeOf(await get(cabinet))
  const lost = (await service.deposit(empty.href, "lost")).header("location")
  await service.deposit(empty.href, "kept")
  const isDiscarded = async () => (await get(`${cabinet}?since=${since}`)).headers.has("discarded")
  expect(await isDiscarded()).toBe(false)
  await remove(added.hrefs[0] ?? "")
  const both = await service.send("PUT", cabinet, {
    basic: owner,
    body: cabinetOf(empty.href, added.href),
    headers: { "If-Match": "*" }
  })
  expect(both.status).toBe(200)
  expect(await isDiscarded()).toBe(false)
  await remove(lost)
  expect(await isDiscarded()).toBe(true)
})

it("takes every cursor that it gives out, also of a mailbox without notifications", async () => {
  const { cursors, href, hrefs } = await fill("one", "two", "three")
  await remove(hrefs[1] ?? "")
  for (const [n, since] of cursors.entries()) {
    const page = await get(`${href}?since=${since}`)
    const left = ["one", "three"].slice(Math.ceil(n / 2) === 0 ? 0 : n === 3 ? 2 : 1)
    expect([page.status, descriptions(page)]).toEqual([200, left])
    const live = await stream(href, { "last-event-id": since })
    if (left.length > 0) expect((await live.next())?.data).toContain(left[0])
    live.close()
  }
})

it("of a cabinet is unknown beyond the log of a mailbox, or older than what is there", async () => {
  const { href, hrefs } = await fill("one", "two", "three")
  const cabinet = (await service.send("POST", "/cabinets", {
    basic: owner,
    body: `<cabinet><mailbox href="${href}"/></cabinet>`
  })).header("location")
  const page = await get(`${cabinet}?limit=2`)
  expect(descriptions(page)).toEqual(["one", "two"])
  const time = timeOf(page)
  expect(descriptions(await get(`${cabinet}?since=${time}`))).toEqual(["three"])
  await expectUnknown(await get(`${cabinet}?since=${time.replace(/\.2_$/, ".9_")}`), "since")
  await expectUnknown(await get(`${cabinet}?since=${time.replace(/^\d+/, "2020")}`), "since")
  const other = (await service.send("POST", "/cabinets", {
    basic: owner,
    body: `<cabinet><mailbox href="${href}"/><query contains="three"/></cabinet>`
  })).header("location")
  expect(descriptions(await get(other))).toEqual(["three"])
  await expectUnknown(await get(`${other}?since=${time}`), "since")
  const malformed = await get(`${cabinet}?since=x`)
  expect([malformed.status, malformed.header("link")]).toEqual([
    400,
    expect.stringContaining("rel=\"first\"")
  ])
  for (const one of hrefs) await remove(one)
  const discarded = await get(`${cabinet}?since=${time}`)
  expect(discarded.status).toBe(200)
  expect(childOf(discarded.xml, "mailbox")?.attributes["discarded"]).toBe("true")
})

it("refuses unknown cursors of the other listings, with a link to the first page", async () => {
  for (const path of ["/mailboxes", "/accounts", "/cabinets", "/outgoing/admin", "/customers"]) {
    const answer = await get(`${path}?after=%21`)
    expect([answer.status, path]).toEqual([400, path])
    expect(answer.child("detail")).toContain("read without after")
    expect(answer.header("link")).toContain("<?>; rel=\"first\"")
  }
})

it("leads to the first page of the same listing, in its format", async () => {
  const { href } = await fill("one")
  const firstOf = async (uri: string) =>
    /<(\?[^>]*)>; rel="first"/.exec((await get(uri)).header("link"))?.[1]
  const unknown = formatCursor(0, 999)
  expect(await firstOf(`${href}?since=${unknown}&limit=7&format=json`)).toBe("?limit=7&format=json")
  expect(await firstOf(`${href}?limit=7&before=x&read=`)).toBe("?limit=7&read=")
  expect(await firstOf("/outgoing/admin?status=failed&after=%21")).toBe("?status=failed")
  expect(await firstOf("/customers?agemin=21&return=name&return=age&after=%21"))
    .toBe("?agemin=21&return=name&return=age")
  expect(await firstOf(`/customers?a=%3Cb%3E%22%C3%BC&%61fter=!`)).toBe("?a=%3Cb%3E%22%C3%BC")
})
