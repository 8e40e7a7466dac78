/** Contexts of the built command line: named services with an account and a token. */
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { adminToken, type Service, start, temporaryFolder } from "../e2e/process.ts"
import { endCommands, type Environment, fileWith, type Ran, run } from "./cli-harness.ts"

let service: Service

/** A service that only keeps the Authorization of requests. */
const authorizations: Array<string | undefined> = []

const listener = createServer((request, response) => {
  authorizations.push(request.headers.authorization)
  response.writeHead(404).end()
})

let elsewhere: string

beforeAll(async () => {
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve))
  const { port } = listener.address() as AddressInfo // a TCP server's address is an object
  elsewhere = `http://127.0.0.1:${port}`
  service = await start()
})

afterAll(() => {
  listener.close()
  endCommands()
})

/** A user with a home of their own, and nothing in the environment. */
const user = () => {
  const home = temporaryFolder()
  const file = join(home, "restante", "contexts.json")
  const restante = (
    args: ReadonlyArray<string>,
    env: Environment = {},
    input = ""
  ): Promise<Ran> => run(args, { RESTANTE_TOKEN: "", XDG_CONFIG_HOME: home, ...env }, input).ended
  const done = async (args: ReadonlyArray<string>, env: Environment = {}, input = "") => {
    const { status, stderr, stdout } = await restante(args, env, input)
    expect({ status, stderr }).toEqual({ status: 0, stderr: expect.anything() })
    return stdout
  }
  /** What `context show` says of each value, and where that comes from. */
  const shown = async (args: ReadonlyArray<string> = [], env: Environment = {}) => {
    const rows: ReadonlyArray<
      { readonly name: string; readonly value: string | null; readonly from: string | null }
    > = JSON.parse(await done(["context", "show", "--json", ...args], env))
    return Object.fromEntries(rows.map(({ from, name, value }) => [name, [value, from]]))
  }
  return { done, file, home, restante, shown }
}

type User = ReturnType<typeof user>

const add = ({ done }: User, name: string, url: string, ...args: ReadonlyArray<string>) =>
  done(["context", "add", name, "--url", url, ...args], { RESTANTE_TOKEN: `token-of-${name}` })

describe("restante context", () => {
  it("adds, lists, selects and removes contexts", async () => {
    const one = user()
    const listed = async () =>
      (await one.done(["context", "list", "--json"])).trimEnd().split("\n")
        .map((line) => JSON.parse(line))
    await add(one, "home", "http://localhost:8080/")
    await add(one, "post", "https://post.example.org", "--account", "bob")
    expect(await listed()).toEqual([
      {
        name: "home",
        url: "http://localhost:8080",
        account: null,
        token: "stored",
        tokenFile: null,
        current: true
      },
      {
        name: "post",
        url: "https://post.example.org",
        account: "bob",
        token: "stored",
        tokenFile: null,
        current: false
      }
    ])
    await one.done(["context", "use", "post"])
    expect((await listed()).map(({ current }) => current)).toEqual([false, true])
    const refused = await one.restante(["context", "remove", "post"])
    expect(refused).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/context post is not removed, .* current one: select another/)
    })
    await one.done(["context", "remove", "home"])
    await one.done(["context", "remove", "post"])
    expect(await one.done(["context", "list", "--json"])).toBe("")
    expect(await one.shown()).toMatchObject({ context: [null, null] })
  })

  it("keeps its file for its owner, and prints no token", async () => {
    const one = user()
    const { stderr, stdout } = await one.restante(
      ["context", "add", "post", "--url", "https://post.example.org"],
      { RESTANTE_TOKEN: "token-of-post" }
    )
    expect(statSync(one.file).mode & 0o777).toBe(0o600)
    expect(statSync(join(one.home, "restante")).mode & 0o777).toBe(0o700)
    expect(readFileSync(one.file, "utf8")).toContain("token-of-post")
    const printed = [stdout, stderr]
    for (const args of [["list"], ["list", "--json"], ["show"], ["show", "--json"]]) {
      const ran = await one.restante(["context", ...args])
      printed.push(ran.stdout, ran.stderr)
    }
    expect(printed.join("")).not.toContain("token-of-post")
  })

  it("replaces a context only if told to", async () => {
    const one = user()
    await add(one, "post", "https://a.example")
    const again = ["context", "add", "post", "--url", "https://b.example"]
    expect(await one.restante(again)).toMatchObject({
      status: 1,
      stderr: expect.stringMatching(/context post exists already: .*--replace/)
    })
    await one.done([...again, "--replace"])
    expect(await one.shown()).toMatchObject({
      url: ["https://b.example", "context post"],
      token: [null, null]
    })
  })

  it("takes the token from a file or from standard input, and from no argument", async () => {
    const one = user()
    const file = fileWith("first\n")
    await one.done(["context", "add", "file", "--url", elsewhere, "--token-file", file])
    expect(readFileSync(one.file, "utf8")).not.toContain("first")
    await one.done(
      ["context", "add", "input", "--url", elsewhere, "--token-file", "-"],
      {},
      "second\n"
    )
    authorizations.length = 0
    const query = ["query", "quotes", "--context"]
    await one.restante([...query, "file"])
    writeFileSync(file, "third\n")
    await one.restante([...query, "file"])
    await one.restante([...query, "input"])
    expect(authorizations).toEqual(["Bearer first", "Bearer third", "Bearer second"])
    const typed = ["context", "add", "typed", "--url", elsewhere, "--token", "fourth"]
    expect(await one.restante(typed)).toMatchObject({ status: 2 })
  })
})

describe("a command", () => {
  it("calls the service of the current context, with its account and token", async () => {
    const one = user()
    const file = fileWith(adminToken)
    await one.done(["context", "add", "own", "--url", service.url, "--token-file", file])
    expect(await one.done(["account", "list"])).toBe("admin\tadmin\n")
    expect(await one.done(["outbox"])).toBe("")
    const archive = join(one.home, "archive")
    await one.done(["backup", archive, "--context", "own"])
    expect(existsSync(archive)).toBe(true)
    const named = ["context", "add", "bob", "--url", service.url, "--account", "bob"]
    await one.done([...named, "--token-file", file])
    // The token is that of another account.
    expect(await one.restante(["outbox", "--context", "bob"])).toMatchObject({ status: 1 })
    expect(await one.done(["outbox", "--context", "bob", "--account", "admin"])).toBe("")
  })

  it("takes each value from its flag, its variable, the context or the default", async () => {
    const one = user()
    await add(one, "current", "https://current.example", "--account", "carol")
    await add(one, "other", "https://other.example", "--account", "olga")
    const ofCurrent = {
      context: ["current", "current context"],
      url: ["https://current.example", "context current"],
      account: ["carol", "context current"],
      token: ["<set>", "context current"]
    }
    const ofOther = (selection: string) => ({
      context: ["other", selection],
      url: ["https://other.example", "context other"],
      account: ["olga", "context other"],
      token: ["<set>", "context other"]
    })
    const variables = {
      BASE_URL: "https://variable.example",
      RESTANTE_TOKEN: "variable",
      RESTANTE_ACCOUNT: "victor"
    }
    const ofVariables = {
      url: ["https://variable.example", "environment BASE_URL"],
      account: ["victor", "environment RESTANTE_ACCOUNT"],
      token: ["<set>", "environment RESTANTE_TOKEN"]
    }
    expect(await one.shown()).toEqual(ofCurrent)
    expect(await one.shown([], { RESTANTE_CONTEXT: "other" }))
      .toEqual(ofOther("environment RESTANTE_CONTEXT"))
    expect(await one.shown([], variables)).toMatchObject(ofVariables)
    expect(await one.shown([], { ...variables, RESTANTE_CONTEXT: "other" }))
      .toMatchObject(ofVariables)
    // A flag is closer to the command than a variable, and so is the context that it selects.
    expect(await one.shown(["--context", "other"], { ...variables, RESTANTE_CONTEXT: "current" }))
      .toEqual(ofOther("flag --context"))
    const file = fileWith("flag")
    const flags = ["--base-url", "https://flag.example", "--account", "fred", "--token-file", file]
    expect(await one.shown([...flags, "--context", "other"], variables)).toMatchObject({
      url: ["https://flag.example", "flag --base-url"],
      account: ["fred", "flag --account"],
      token: ["<set>", `flag --token-file, ${file}`]
    })
    expect(await user().shown()).toEqual({
      context: [null, null],
      url: ["http://localhost:8080", "default"],
      account: [null, null],
      token: [null, null]
    })
  })

  it("sends the token of a context to its own service only", async () => {
    const one = user()
    await add(one, "post", "http://127.0.0.1:9", "--account", "bob")
    authorizations.length = 0
    const query = ["query", "quotes"]
    await one.restante([...query, "--base-url", elsewhere])
    await one.restante([...query, "--base-url", elsewhere, "--context", "post"])
    await one.restante(query, { BASE_URL: elsewhere })
    // The URI names another service than the current context.
    await one.restante(["read", `${elsewhere}/mailboxes/alice`])
    expect(authorizations).toEqual([undefined, undefined, undefined, undefined])
    await add(one, "own", elsewhere, "--account", "bob")
    await one.restante([...query, "--base-url", elsewhere, "--context", "own"])
    const basic = `Basic ${Buffer.from("bob:token-of-own").toString("base64")}`
    expect(authorizations.at(-1)).toBe(basic)
  })

  it("names the account with the token of the context alone", async () => {
    const one = user()
    await add(one, "own", elsewhere, "--account", "bob")
    authorizations.length = 0
    const query = ["query", "quotes"]
    await one.restante(query, { RESTANTE_TOKEN: "variable" })
    await one.restante(query, { ADMIN_TOKEN: "variable", RESTANTE_ACCOUNT: "bob" })
    await one.restante([...query, "--token-file", fileWith("flag")])
    expect(authorizations).toEqual(["Bearer variable", "Bearer variable", "Bearer flag"])
  })
})

describe("an unusable context", () => {
  const unusable = async (one: User, message: RegExp, args = ["outbox"], env: Environment = {}) => {
    const { status, stderr, stdout } = await one.restante(args, env)
    expect({ status, stdout }).toEqual({ status: 78, stdout: "" })
    expect(stderr).toMatch(message)
    expect(stderr.trimEnd().split("\n")).toHaveLength(1)
    expect(stderr).not.toContain("token-of")
  }

  it("is one that does not exist", async () => {
    const one = user()
    await unusable(one, /context a does not exist: there is none yet: .*context add/, [
      "outbox",
      "--context",
      "a"
    ])
    await add(one, "post", elsewhere)
    const named = /context a does not exist: there are post: name one/
    await unusable(one, named, ["outbox"], { RESTANTE_CONTEXT: "a" })
    await unusable(one, named, ["context", "use", "a"])
    await unusable(one, named, ["context", "remove", "a"])
    await unusable(one, /constructor does not exist/, ["outbox", "--context", "constructor"])
  })

  it("is one in a file or a folder that is open to others", async () => {
    const one = user()
    await add(one, "post", elsewhere)
    chmodSync(one.file, 0o640)
    await unusable(one, /contexts\.json has mode 640, .*: chmod 600 /)
    await unusable(one, /contexts\.json has mode 640, .*: chmod 600 /, ["context", "list"])
    // A command that names everything itself does not need the file.
    const whole = { BASE_URL: elsewhere, RESTANTE_TOKEN: "t" }
    expect(await one.restante(["outbox"], whole)).toMatchObject({ status: 1 })
    chmodSync(one.file, 0o600)
    chmodSync(join(one.home, "restante"), 0o770)
    await unusable(one, /restante has mode 770, .*: chmod 700 /)
  })

  it("is one in a file that cannot be read, or is no list of contexts", async () => {
    const one = user()
    await add(one, "post", elsewhere)
    for (
      const text of ["token-of-post", "{\"contexts\":{\"post\":{\"url\":\"token-of\", }}}", "[]"]
    ) {
      writeFileSync(one.file, text)
      await unusable(one, /contexts\.json is no list of contexts: correct it, or remove it/)
    }
    writeFileSync(one.file, " ".repeat(300_000))
    await unusable(one, /has more than 262144 bytes: shorten it/)
    const other = user()
    mkdirSync(other.file, { recursive: true, mode: 0o700 })
    await unusable(other, /contexts are not read: EISDIR.*: correct the owner and the mode of /)
  })

  it("is one whose token file is gone", async () => {
    const one = user()
    const file = fileWith("token-of-post")
    await one.done(["context", "add", "post", "--url", elsewhere, "--token-file", file])
    writeFileSync(file, "")
    const { status, stderr } = await one.restante(["outbox"])
    expect(status).toBe(2)
    expect(stderr).toMatch(/has no secret, .*: restore the file of the context post, or replace/)
  })

  it.each(["post.example.org", "https://bob:token@post.example.org", "https://a.example/path"])(
    "is one whose address is %s",
    async (url) => {
      const one = user()
      const ran = await one.restante(["context", "add", "post", "--url", url])
      expect(ran).toMatchObject({
        status: 2,
        stderr: expect.stringContaining("is no address of a service: give an http or https URL")
      })
      expect(existsSync(one.file)).toBe(false)
    }
  )
})
