/**
 * NATS servers for one run of the projects `nats` (one server) and `cluster` (three). They have
 * many accounts, so that each service of a test has separate streams and subjects.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { startCluster, startServer } from "../runtime/nats/servers.ts"

/** More than the services that all suites start together. */
const accountsMax = 200
const clusterSize = 3

/** The servers, as the suites get them from Vitest. */
export interface NatsProvided {
  readonly urls: ReadonlyArray<string>
  /** A folder with one entry for each account in use. */
  readonly accountsFolder: string
}

declare module "vitest" {
  export interface ProvidedContext {
    nats: NatsProvided
  }
}

const passwordOf = (name: string): string => `password-of-${name}`

const accounts = Array.from({ length: accountsMax }, (_, at) => `t${at}`)
const extra = `accounts {\n${
  accounts.map((name) =>
    `${name}: { jetstream: enabled, users: [{ user: ${name}, password: ${passwordOf(name)} }] }`
  ).join("\n")
}\n}`

/** Reserves an account that no other service uses, in any process. */
export const takeAccount = (
  accountsFolder: string
): { readonly user: string; readonly pass: string } => {
  for (const user of accounts) {
    try {
      mkdirSync(join(accountsFolder, user))
      return { user, pass: passwordOf(user) }
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error
    }
  }
  throw new Error(`the suites start more than ${accountsMax} services`)
}

/** Starts the servers before the project's first suite; the result stops them after the last. */
export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const [user = ""] = accounts
  const options = { extra, user, pass: passwordOf(user) }
  const started = project.name === "cluster"
    ? await startCluster(clusterSize, options)
    : await startServer(options)
  const accountsFolder = mkdtempSync(join(tmpdir(), "restante-accounts-"))
  project.provide("nats", {
    urls: "urls" in started ? started.urls : [started.url],
    accountsFolder
  })
  return async () => {
    await started.close()
    rmSync(accountsFolder, { recursive: true, force: true })
  }
}
