/** Crontabs of the pages: cron takes their schedules, and their commands do what the page says. */
import { spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { openMailbox } from "../e2e/client.ts"
import { cleanUp, start } from "../e2e/process.ts"
import { blocksOf, pages } from "./pages.ts"
import { environmentOf, type Site, siteOf } from "./reader.ts"

afterAll(cleanUp)

const withinMs = 120_000
const dayMs = 24 * 60 * 60 * 1_000

const crontabs = pages.flatMap(blocksOf).filter(({ language }) => language === "crontab")

interface Crontab {
  readonly variables: Readonly<Record<string, string>>
  readonly jobs: ReadonlyArray<{ readonly schedule: string; readonly command: string }>
}

/** The lowest and the highest value of each field of a schedule (crontab(5) of Debian). */
const fields: ReadonlyArray<readonly [least: number, most: number]> = [
  [0, 59],
  [0, 23],
  [1, 31],
  [1, 12],
  [0, 7]
]

/** Throws unless the field has stars, values and ranges within the bounds, with steps or not. */
const checkField = (text: string, [least, most]: readonly [number, number]): void => {
  for (const part of text.split(",")) {
    const [, from, to, step] = /^(?:\*|(\d+)(?:-(\d+))?)(?:\/(\d+))?$/.exec(part) ?? []
    const values = [from, to].flatMap((value) => value === undefined ? [] : [Number(value)])
    const isRight = (from !== undefined || part.startsWith("*")) && step !== "0" &&
      values.every((value) => value >= least && value <= most) &&
      (values[0] ?? least) <= (values[1] ?? most)
    if (!isRight) throw new Error(`${part} is no value from ${least} to ${most}`)
  }
}

/** Reads a crontab as cron does: variables, then jobs, whose `%` must be escaped. */
const crontabOf = (text: string): Crontab => {
  const variables: Record<string, string> = {}
  const jobs: Array<{ schedule: string; command: string }> = []
  for (const line of text.trimEnd().split("\n")) {
    const [, name, value = ""] = /^(\w+)=(\S*)$/.exec(line) ?? []
    if (name !== undefined) {
      variables[name] = value
      continue
    }
    const [, schedule = "", command = ""] = /^((?:\S+\s+){5})(\S.*)$/.exec(line) ?? []
    const written = schedule.trim().split(/\s+/)
    if (written.length !== fields.length) throw new Error(`no job of cron: ${line}`)
    written.forEach((field, n) => checkField(field, fields[n] ?? [0, 0]))
    if (/(?<!\\)%/.test(command)) throw new Error(`cron ends this command at its %: ${line}`)
    jobs.push({ schedule: schedule.trim(), command: command.replaceAll("\\%", "%") })
  }
  return { variables, jobs }
}

/** What a page assumes before its jobs run, and what they must have done. */
interface Expected {
  readonly prepare: (site: Site, programs: string) => Promise<void> | void
  readonly check: (site: Site) => Promise<void> | void
  /** Places of the page on this machine. */
  readonly places: (site: Site, programs: string) => ReadonlyArray<readonly [string, string]>
}

const program = (folder: string, name: string, text: string): void => {
  writeFileSync(join(folder, name), text)
  chmodSync(join(folder, name), 0o755)
}

const backups: Expected = {
  places: () => [],
  prepare: ({ folder }) => {
    for (const [name, days] of [["old", 32], ["recent", 2]] as const) {
      const file = join(folder, `backup/restante-${name}.gz`)
      writeFileSync(file, name)
      const atS = (Date.now() - days * dayMs) / 1_000
      utimesSync(file, atS, atS)
    }
  },
  check: ({ folder }) => {
    const files = readdirSync(join(folder, "backup")).sort()
    expect(files).toEqual([
      expect.stringMatching(/^restante-\d{4}-\d\d-\d\d\.gz$/),
      "restante-recent.gz"
    ])
    const [gzip] = files.map((name) => readFileSync(join(folder, "backup", name)))
    expect([...gzip?.subarray(0, 2) ?? []]).toEqual([0x1f, 0x8b])
  }
}

const reports: Expected = {
  places: ({ folder, service }, programs) => [
    ["https://post.example.org", `http://localhost:${service.port}`],
    ["/etc/restante/", `${folder}/`],
    ["/usr/local/bin/", `${programs}/`]
  ],
  prepare: async ({ folder, service, token }, programs) => {
    await openMailbox(service.url, "alerts")
    writeFileSync(join(folder, "robot.auth"), `Authorization: Bearer ${token}\n`)
    const [report] = blocksOf("docs/how-to/recipes.md").filter(({ mark }) =>
      mark?.kind === "file" && mark.text === "report"
    )
    program(programs, "report", report?.text ?? "")
    program(programs, "backup", "#!/bin/sh\necho 'copied 12 files'\n")
  },
  check: async ({ service, token }) => {
    const headers = { authorization: `Bearer ${token}`, accept: "application/json" }
    const answer = await fetch(`${service.url}/mailboxes/alerts`, { headers })
    expect([answer.status, await answer.text()])
      .toEqual([200, expect.stringContaining("backup has succeeded")])
  }
}

const expectedOf: Readonly<Record<string, Expected>> = {
  "docs/backup.md": backups,
  "docs/how-to/recipes.md": reports
}

it("refuses what cron does not take", () => {
  for (
    const wrong of [
      "60 3 * * * job",
      "0 24 * * * job",
      "0 3 0 * * job",
      "0 3 * 1-13 * job",
      "0 3 * * 5-1 job",
      "*/0 3 * * * job",
      "0 3 * * job",
      "0 3 * * * date +%F"
    ]
  ) expect(() => crontabOf(wrong), wrong).toThrow()
  expect(crontabOf("*/5,7 0-6/2 1,15 * 7 date +\\%F").jobs)
    .toEqual([{ schedule: "*/5,7 0-6/2 1,15 * 7", command: "date +%F" }])
})

describe("a crontab", () => {
  it("is one of these, each on a page of its own", () => {
    expect(crontabs.map(({ page }) => page)).toEqual(Object.keys(expectedOf))
  })

  it.each(crontabs)("of $page does what the page says", async ({ page, text }) => {
    const expected = expectedOf[page]
    if (expected === undefined) throw new Error(`nothing is expected of ${page}`)
    const site = await siteOf(await start({ env: { BASE_URL: "" } }))
    const programs = join(site.folder, "programs")
    mkdirSync(programs)
    const places = expected.places(site, programs)
    const here = (written: string) =>
      places.reduce((now, [a, b]) => now.replaceAll(a, b), site.here(written))
    const { jobs, variables } = crontabOf(text)
    await expected.prepare(site, programs)
    const env = environmentOf(site)
    const own = Object.entries(variables).map(([name, value]) => [name, here(value)])
    for (const { command } of jobs) {
      const { status, stderr, stdout } = spawnSync("/bin/sh", ["-c", here(command)], {
        cwd: site.folder,
        env: { ...env, PATH: `${programs}:${env.PATH}`, ...Object.fromEntries(own) },
        encoding: "utf8",
        timeout: withinMs
      })
      expect(status, `${command}\n${stdout}${stderr}`).toBe(0)
    }
    await expected.check(site)
    await site.service.kill()
  })
})
