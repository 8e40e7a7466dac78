/** What the first start prints, typed as it stands; and the mailbox that it opens. */
import { execFileSync } from "node:child_process"
import { afterAll, describe, expect, it } from "vitest"
import { asAdmin, basic, expectStatus, send } from "../e2e/client.ts"
import { adminToken, cleanUp, command, start } from "../e2e/process.ts"

afterAll(cleanUp)

/** As a person's: the start makes up a token, and its URIs are of this machine. */
const env = { ADMIN_TOKEN: "", BASE_URL: "" }

const asHtml = { accept: "text/html" }

/** The part of a listing that counts here. */
interface Listed {
  readonly notification: ReadonlyArray<{ readonly item: { readonly description: string } }>
}

const shown = /\n\nSend something .+:\n {2}(curl -d .+)\n {2}(curl .+)\n {2}(\S+)\n$/

const typed = (line: string): string =>
  execFileSync("bash", ["-c", line], {
    encoding: "utf8",
    env: { PATH: process.env["PATH"] ?? "", ADMIN_TOKEN: adminToken, NO_PROXY: "*" },
    stdio: ["ignore", "pipe", "ignore"]
  })

describe("the first start", () => {
  it("prints three lines that deposit, read and show a message, and prints them once", async () => {
    const service = await start({ env })
    const [, deposit = "", read = "", page = ""] = shown.exec(service.output) ?? []
    expect(deposit).toBe(`curl -d "hello" http://localhost:${service.port}/mailboxes/inbox`)
    expect(typed(deposit)).toBe("")
    // The service writes this form.
    const { notification } = JSON.parse(typed(read)) as Listed
    expect(notification.map(({ item }) => item.description)).toEqual(["hello"])
    const html = await fetch(page, { headers: asHtml })
    expect(html.status).toBe(200)
    expect(await html.text()).toContain(">hello</a>")
    const { dataDir } = service
    await service.stop()
    const second = await start({ dataDir, env })
    expect(second.output).not.toMatch(/curl|first start/)
    expect(typed(read.replace(String(service.port), String(second.port)))).toContain("hello")
  })

  it("prints no secret with a chosen token", async () => {
    const { output, port, url } = await start({ env: { BASE_URL: "" } })
    const [, , read = "", page] = shown.exec(output) ?? []
    const inbox = `http://localhost:${port}/mailboxes/inbox`
    expect([read, page]).toEqual([`curl -u "admin:$ADMIN_TOKEN" '${inbox}?format=json'`, inbox])
    expect(typed(read)).toContain(`{"href":"${inbox}"`)
    expect((await send(url, "/mailboxes/inbox", { headers: asHtml })).status).toBe(200)
    // It receives failure reports.
    const { text } = await send(url, "/accounts/admin", { headers: asAdmin })
    expect(text).toContain("<failure-reports>inbox</failure-reports>")
  })

  it("opens a mailbox for the failure reports of another account, if asked", async () => {
    const { url } = await start()
    const asOperator = { RESTANTE_TOKEN: adminToken, BASE_URL: url }
    const added = await command(["account", "add", "eve", "--reports-mailbox", "oops"], asOperator)
    const [token = ""] = /rst_\S+/.exec(added.output) ?? []
    const own = { headers: { authorization: basic("eve", token) } }
    expect((await send(url, "/accounts/eve", own)).text)
      .toContain("<failure-reports>oops</failure-reports>")
    expect((await send(url, "/mailboxes/oops?format=xml", own)).status).toBe(200)
    // The token is printed, and the failure says what is missing.
    const taken = await command(["account", "add", "ivy", "--reports-mailbox", "oops"], asOperator)
    expect(taken.output).toMatch(/rst_\S+/)
    expect(taken.output).toContain(
      "the account ivy exists, but its failure reports may go to no mailbox"
    )
    expect(taken.output).toContain("look at /accounts/ivy, and choose oops or another mailbox")
    // The title of a refusal names neither what happened nor to what.
    expect(taken.output).not.toContain("In conflict with")
    const again = await command(["account", "add", "eve"], asOperator)
    expect(again.output).toContain(
      "/accounts: 409: account eve already exists: create a token of it instead"
    )
  })

  it("opens a mailbox for the failure reports of each other account, or none", async () => {
    const { url } = await start()
    const asOperator = { RESTANTE_TOKEN: adminToken, BASE_URL: url }
    const added = await command(["account", "add", "eve"], asOperator)
    const [path = ""] = /\/mailboxes\/reports-[0-9a-f]{32}/.exec(added.output) ?? []
    const [token = ""] = /rst_\S+/.exec(added.output) ?? []
    const own = { headers: { authorization: basic("eve", token) } }
    expect((await send(url, `${path}?format=xml`, own)).status).toBe(200)
    const refusing = await command(["account", "add", "ivy", "--no-reports"], asOperator)
    expect(refusing.output).toContain("are reported nowhere: choose a mailbox at /accounts/ivy.")
    const both = ["account", "add", "max", "--no-reports", "--reports-mailbox", "oops"]
    expect((await command(both, asOperator)).output)
      .toContain("there are both --reports-mailbox and --no-reports")
    expect((await send(url, "/accounts/max", { headers: asAdmin })).status).toBe(404)
  })

  it("leaves the name of the unused mailbox to admins, and to no other account", async () => {
    const { url } = await start()
    const asOperator = { RESTANTE_TOKEN: adminToken, BASE_URL: url }
    const added = await command(["account", "add", "bob"], asOperator)
    const [bobs = ""] = /rst_\S+/.exec(added.output) ?? []
    const create = (authorization: string) =>
      send(url, "/mailboxes", { method: "POST", headers: { authorization, slug: "inbox" } })
    const listed = async () => (await send(url, "/mailboxes", { headers: asAdmin })).text
    expect(await listed()).toContain("/mailboxes/inbox\"")
    expectStatus(await create(basic("bob", bobs)), 409)
    expect(await listed()).toContain("/mailboxes/inbox\"")
    expectStatus(await create(asAdmin.authorization), 201)
    expect(await listed()).toContain("/mailboxes/inbox\"")
    expectStatus(await create(asAdmin.authorization), 409)
  })
})
