/**
 * A form of a page changes what the page has shown. If somebody has changed it since, the form
 * comes back with what was typed and what is saved now, and changes nothing.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { cabinetOf } from "./cabinets-harness.ts"
import { adminToken, type Answered, type Harness, startService } from "./harness.ts"

const basic = `admin:${adminToken}`

let service: Harness
beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

type Fields = Readonly<Record<string, string>>

const page = async (path: string): Promise<string> =>
  (await service.send("GET", path, { basic, accept: "text/html" })).text

const post = (
  path: string,
  fields: Fields,
  headers: Fields = {},
  accept = "text/html"
): Promise<Answered> =>
  service.send("POST", path, {
    basic,
    accept,
    headers,
    type: "application/x-www-form-urlencoded",
    body: new URLSearchParams(fields).toString()
  })

const location = (answered: Answered) => new URL(answered.header("location")).pathname

/** The form with a version at this address that a page has. The rest may change by itself. */
const formAt = (text: string, action: string): string =>
  text.split("<form ").map((part) => part.split("</form>")[0] ?? "")
    .find((form) => form.startsWith(`action="${action}"`) && form.includes("name=\"version\"")) ??
    ""

const versionIn = (form: string): string =>
  /name="version" value="([^"]*)"/.exec(form)?.[1] ?? "none"

/** The version in that form. */
const versionFor = (text: string, action: string): string => versionIn(formAt(text, action))

let names = 0

const openMailbox = async (settings = ""): Promise<string> => {
  const body = `<mailbox><name>outdated-${++names}</name>${settings}</mailbox>`
  return location(await service.send("POST", "/mailboxes", { basic, body }))
}

/** A page with a form, two changes by it, and where its answer shows the first one. */
interface Editing {
  readonly shown: string
  readonly action: string
  readonly first: Fields
  readonly second: Fields
  /** The field whose value both change, and its values for people. */
  readonly field: string
  readonly saved: string
  readonly typed: string
}

const kinds: Readonly<Record<string, () => Promise<Editing>>> = {
  "the settings of a mailbox": async () => {
    const shown = await openMailbox()
    const put = { method: "put", retention: "P7D" }
    return {
      shown,
      action: `${shown}/settings`,
      first: { ...put, title: "First", deposit: "accounts" },
      second: { ...put, title: "Second", deposit: "anyone" },
      field: "title",
      saved: "First",
      typed: "Second"
    }
  },
  "the webhooks of a mailbox": async () => {
    const shown = await openMailbox("<webhook>{/a}</webhook>")
    return {
      shown,
      action: `${shown}/webhooks`,
      first: { sender: "grafana" },
      second: { sender: "", webhook: "{/b}" },
      field: "sender",
      saved: "Grafana",
      typed: "{/b}"
    }
  },
  "a cabinet": async () => {
    const mailbox = await openMailbox()
    const body = cabinetOf([mailbox], "<title>Old</title>")
    const shown = location(await service.send("POST", "/cabinets", { basic, body }))
    return {
      shown,
      action: shown,
      first: { title: "First", mailbox },
      second: { title: "Second", mailbox },
      field: "title",
      saved: "First",
      typed: "Second"
    }
  },
  "a registration": async () => {
    const callback = (name: string) => `http://127.0.0.1:9/${name}`
    const body = `<registration><callback>${callback("old")}</callback></registration>`
    const path = `${await openMailbox()}/registrations`
    const shown = location(await service.send("POST", path, { basic, body }))
    return {
      shown,
      action: shown,
      first: { method: "put", callback: callback("first") },
      second: { method: "put", callback: callback("second") },
      field: "callback",
      saved: callback("first"),
      typed: callback("second")
    }
  },
  "an account": async () => {
    const [one, other] = [await openMailbox(), await openMailbox()].map((path) =>
      path.replace("/mailboxes/", "")
    )
    return {
      shown: "/accounts/admin",
      action: "/accounts/admin",
      first: { method: "put", "failure-reports": one ?? "" },
      second: { method: "put", "failure-reports": other ?? "" },
      field: "failure-reports",
      saved: one ?? "",
      typed: other ?? ""
    }
  },
  "the pauses of an outgoing mailbox": async () => ({
    shown: "/outgoing/admin/pauses",
    action: "/outgoing/admin/pauses",
    first: { method: "put", status: "active", origin: "https://first.example" },
    second: { method: "put", status: "active", origin: "https://second.example" },
    field: "origin",
    saved: "https://first.example",
    typed: "https://second.example"
  }),
  "a quote": async () => {
    const body = "<quote><price currency=\"USD\">1</price></quote>"
    await service.send("PUT", "/quotes/OLD", { basic, body })
    return {
      shown: "/quotes/OLD",
      action: "/quotes/OLD",
      first: { price: "2.50", currency: "EUR" },
      second: { price: "3.50", currency: "USD" },
      field: "price",
      saved: "2.50",
      typed: "3.50"
    }
  },
  "a customer": async () => {
    const body = "<customer><name>Old</name><age>30</age></customer>"
    const shown = location(await service.send("POST", "/customers", { basic, body }))
    return {
      shown,
      action: shown,
      first: { name: "First", age: "31" },
      second: { name: "Second", age: "32" },
      field: "name",
      saved: "First",
      typed: "Second"
    }
  },
  "a query": async () => {
    const body = "<query on=\"customers\"><where field=\"age\" op=\"ge\" value=\"21\"/></query>"
    const shown = location(await service.send("POST", "/queries", { basic, body }))
    const change = { on: "customers", match: "all", field1: "age", op1: "ge", value1: "30" }
    return {
      shown,
      action: shown,
      first: { ...change, title: "First" },
      second: { ...change, title: "Second" },
      field: "title",
      saved: "First",
      typed: "Second"
    }
  }
}

describe.each(Object.keys(kinds))("a form of an older page of %s", (kind) => {
  const edit = async (): Promise<Editing> => {
    const make = kinds[kind]
    if (make === undefined) throw new Error(`there is no ${kind}`)
    return await make()
  }

  it("changes nothing, and comes back with what is saved and what was typed", async () => {
    const { action, field, first, saved, second, shown, typed } = await edit()
    const version = versionFor(await page(shown), action)
    expect(version).toMatch(/^[\w-]+$/)
    expect((await post(action, { ...first, version })).status).toBe(303)
    const current = formAt(await page(shown), action)
    const refused = await post(action, { ...second, version })
    expect(refused.status).toBe(412)
    expect(refused.text).toContain("Somebody has changed this meanwhile")
    expect(refused.text).toContain("Nothing was saved")
    const id = `[\\w]+[\\w-]*-${field}-saved`
    const notes = new RegExp(
      `aria-describedby="${id}[^>]*>[^]*?<small id="${id}" class="saved">` +
        `Saved now: ([^<]*)</small>`
    ).exec(refused.text)
    expect(notes?.[1]).toBe(saved)
    expect(refused.text).toContain(typed)
    expect(versionFor(refused.text, action))
      .toBe(versionIn(current))
    expect(formAt(await page(shown), action)).toBe(current)
    // Who has compared them sends it again.
    const again = { ...second, version: versionFor(refused.text, action) }
    expect((await post(action, again)).status).toBe(303)
    expect(await page(shown)).toContain(typed)
  })

  it("is a plain problem for a program; without a version it changes what is there", async () => {
    const { action, first, second, shown } = await edit()
    const version = versionFor(await page(shown), action)
    expect((await post(action, { ...first, version })).status).toBe(303)
    const refused = await post(action, { ...second, version }, {}, "application/xml")
    expect([refused.status, refused.xml.name]).toEqual([412, "problem"])
    expect(refused.child("detail")).toContain("read the page again")
    expect((await post(action, second)).status).toBe(303)
  })

  it("honors If-Match", async () => {
    const { action, first, shown } = await edit()
    const before = formAt(await page(shown), action)
    const refused = await post(action, first, { "If-Match": "\"nonsense\"" })
    expect([refused.status, formAt(await page(shown), action)]).toEqual([412, before])
    // Attempts to push change a page, too.
    await expect.poll(async () => {
      const { etag } = await service.send("GET", shown, { basic, accept: "text/html" })
      return (await post(action, first, { "If-Match": etag })).status
    }).toBe(303)
  })
})

describe("a form that is refused for its values", () => {
  it("keeps the version of its page, so that the next attempt is checked, too", async () => {
    const shown = await openMailbox()
    const action = `${shown}/settings`
    const version = versionFor(await page(shown), action)
    const put = { method: "put", title: "Mine" }
    const corrected = await post(action, { ...put, retention: "soon", version })
    expect([corrected.status, versionFor(corrected.text, action)]).toEqual([422, version])
    expect((await post(action, { ...put, title: "Theirs", version })).status).toBe(303)
    expect((await post(action, { ...put, version })).status).toBe(412)
  })
})
