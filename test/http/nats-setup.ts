/**
 * NATS servers for one run of the projects `nats` (one server) and `cluster` (three): many accounts
 * on them, so that each service that a test starts has streams and subjects of its own.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"
import { startCluster, startServer } from "../runtime/nats/servers.ts"

/** More than the services that all suites start together. */
const accountsMax = 200
const clusterSize = 3

/** What the suites need to know of the servers. */
export interface NatsProvided {
  readonly urls: ReadonlyArray<string>
  /** Where the accounts that are taken are noted. */
  readonly taken: string
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

/** An account that no other service has, in whichever process it runs. */
export const takeAccount = (taken: string): { readonly user: string; readonly pass: string } => {
  for (const user of accounts) {
    try {
      mkdirSync(join(taken, user))
      return { user, pass: passwordOf(user) }
    } catch (error) {
      if (!(error instanceof Error && "code" in error && error.code === "EEXIST")) throw error
    }
  }
  throw new Error(`the suites start more than ${accountsMax} services`)
}

/** Starts them before the project's first suite; what it returns ends them after the last. */
export const setup = async (project: TestProject): Promise<() => Promise<void>> => {
  const [user = ""] = accounts
  const options = { extra, user, pass: passwordOf(user) }
  const started = project.name === "cluster"
    ? await startCluster(clusterSize, options)
    : await startServer(options)
  const taken = mkdtempSync(join(tmpdir(), "restante-accounts-"))
  project.provide("nats", { urls: "urls" in started ? started.urls : [started.url], taken })
  return async () => {
    await started.close()
    rmSync(taken, { recursive: true, force: true })
  }
}
