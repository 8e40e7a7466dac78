/** Programs of Debian for these tests: on the path, or installed as root. */
import { execFile, spawnSync } from "node:child_process"
import { existsSync } from "node:fs"
import { delimiter, join } from "node:path"

const outputBytesMax = 64 * 1024 * 1024

/** Debian's folders of administrative programs, which the path may lack. */
const folders = () => [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"]

/** The path of an installed program; `more`: folders beside those of the path. */
export const found = (name: string, more: ReadonlyArray<string> = []): string | undefined =>
  [...folders(), ...more].map((folder) => join(folder, name)).find(existsSync)

const apt = (...args: ReadonlyArray<string>) =>
  spawnSync("apt-get", ["-qq", "-o", "DPkg::Lock::Timeout=300", ...args], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    encoding: "utf8"
  })

/** The path of a program, installed if necessary. Throws what to install where that fails. */
export const toolOf = (
  name: string,
  debianPackage = name,
  more: ReadonlyArray<string> = []
): string => {
  const there = found(name, more)
  if (there !== undefined) return there
  apt("update")
  // apt-get also fails for unrelated packages, so only the program itself counts.
  const { stderr } = apt("install", "-y", "--no-install-recommends", debianPackage)
  const installed = found(name, more)
  if (installed === undefined) {
    throw new Error(`no ${name}: install it, as Debian's ${debianPackage}\n${stderr ?? ""}`)
  }
  return installed
}

/** Runs a short program. */
export const run = (
  program: string,
  args: ReadonlyArray<string>,
  environment: Readonly<Record<string, string>> = {}
): { readonly code: number | null; readonly output: string } => {
  const { error, status, stderr, stdout } = spawnSync(program, args, {
    env: { PATH: process.env["PATH"] ?? "", ...environment },
    encoding: "utf8",
    maxBuffer: outputBytesMax
  })
  return { code: status, output: `${stdout ?? ""}${stderr ?? ""}${error?.message ?? ""}` }
}

/** Runs a long program. Fails, with its output, unless it succeeds. */
export const must = (
  program: string,
  args: ReadonlyArray<string>,
  environment: NodeJS.ProcessEnv = process.env
): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { env: environment, maxBuffer: outputBytesMax }
    execFile(program, [...args], options, (error, stdout, stderr) => {
      if (error === null) resolve(stdout)
      else reject(new Error(`${error.message.slice(0, 1000)}\n${stdout}${stderr}`))
    })
  })

/**
 * The arguments of `unshare` for private mounts. In a changed root, where the root is no mount
 * point, propagation cannot be set; the mounts are private anyway.
 */
export const ownMounts = (): ReadonlyArray<string> => {
  const isRootMounted = run("unshare", ["--mount", "--propagation", "private", "true"]).code === 0
  return ["--mount", "--propagation", isRootMounted ? "private" : "unchanged"]
}
