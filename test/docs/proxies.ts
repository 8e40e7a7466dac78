/** nginx, HAProxy and Caddy as docs/how-to/proxy.md configures them, with ports of this machine. */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { replaced } from "../deploy/servers.ts"
import { run, toolOf } from "../deploy/tools.ts"
import { Running, temporaryFolder } from "../e2e/process.ts"
import { blocksOf } from "./pages.ts"

const page = "docs/how-to/proxy.md"
const name = "post.example.org"

/** The file that readers of the page save by this name. */
export const fileOf = (file: string): string => {
  const found = blocksOf(page).find(({ mark }) => mark?.kind === "file" && mark.text === file)
  if (found === undefined) throw new Error(`${page} has no ${file}`)
  return found.text
}

/** A running proxy, its log, and its folder for bodies. */
export interface Proxy {
  readonly running: Running
  readonly log: string
  readonly folder: string
}

/** Creates the self-signed certificate of the proxies. */
const certify = (folder: string): void => {
  const { code, output } = run(toolOf("openssl"), [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
    ...["-subj", `/CN=${name}`, "-addext", `subjectAltName=DNS:${name}`],
    ...["-keyout", join(folder, "key.pem"), "-out", join(folder, "certificate.pem")]
  ])
  if (code !== 0) throw new Error(output)
}

/** The page's nginx.conf on these ports. */
export const nginxFile = (folder: string, { plain, service, tls, upstreams }: Ports): string => {
  const at = (file: string) => join(folder, file)
  const letsencrypt = `/etc/letsencrypt/live/${name}`
  let site = fileOf("nginx.conf")
  const changes: ReadonlyArray<readonly [string, string]> = [
    ["server 127.0.0.1:8080;", `server 127.0.0.1:${service};`],
    ["  listen 80;\n", `  listen 127.0.0.1:${plain};\n`],
    ["  listen [::]:80;\n", ""],
    ["listen 443 ssl http2;", `listen 127.0.0.1:${tls} ssl http2;`],
    ["  listen [::]:443 ssl http2;\n", ""],
    [`${letsencrypt}/fullchain.pem`, at("certificate.pem")],
    [`${letsencrypt}/privkey.pem`, at("key.pem")],
    ["/var/log/nginx/restante.log", at("access.log")],
    ["/var/log/nginx/restante-error.log", at("site-error.log")]
  ]
  if (upstreams !== undefined) site = replaced(site, "keepalive 64;", `keepalive ${upstreams};`)
  for (const [from, to] of changes) site = replaced(site, from, to)
  const kept = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((one) => `${one}_temp_path ${at(one)};`)
  const whole = [
    "daemon off;",
    process.getuid?.() === 0 ? "user root;" : "",
    `pid ${at("pid")};`,
    `error_log ${at("error.log")} warn;`,
    "events {}",
    `http {\n${kept.join("\n")}\n${site}}`
  ]
  writeFileSync(at("nginx.conf"), `${whole.join("\n")}\n`)
  return at("nginx.conf")
}

/** The page's haproxy.cfg on these ports. It logs to standard output. */
export const haproxyFile = (folder: string, { plain, service, tls, upstreams }: Ports): string => {
  const at = (file: string) => join(folder, file)
  writeFileSync(
    at("both.pem"),
    ["certificate.pem", "key.pem"].map((file) => readFileSync(at(file), "utf8")).join("")
  )
  const threads = upstreams === undefined ? "" : `nbthread ${upstreams}`
  const changes: ReadonlyArray<readonly [string, string]> = [
    ["log /dev/log local0\n", `log stdout format raw local0\n  ${threads}\n`],
    ["  user haproxy\n  group haproxy\n", ""],
    ["bind :::80 v4v6", `bind 127.0.0.1:${plain}`],
    ["bind :::443 v4v6", `bind 127.0.0.1:${tls}`],
    ["/etc/haproxy/post.example.org.pem", at("both.pem")],
    ["127.0.0.1:8080", `127.0.0.1:${service}`]
  ]
  let site = fileOf("haproxy.cfg")
  for (const [from, to] of changes) site = replaced(site, from, to)
  writeFileSync(at("haproxy.cfg"), site)
  return at("haproxy.cfg")
}

/** The page's Caddyfile on these ports. */
export const caddyFile = (folder: string, ports: Ports): string => {
  const at = (file: string) => join(folder, file)
  const log = at("access.log")
  let site = fileOf("Caddyfile")
  const changes: ReadonlyArray<readonly [string, string]> = [
    [
      `${name} {\n`,
      `https://${name}:${ports.tls} {\n\tbind 127.0.0.1\n\ttls ${at("certificate.pem")} ${
        at("key.pem")
      }\n`
    ],
    ["127.0.0.1:8080", `127.0.0.1:${ports.service}`],
    ["{\n\tlog {\n", `{\n\tadmin off\n\tauto_https off\n\tlog {\n\t\toutput file ${log}\n`]
  ]
  for (const [from, to] of changes) site = replaced(site, from, to)
  writeFileSync(at("Caddyfile"), site)
  return at("Caddyfile")
}

/** Ways to write the path of the metrics, which no proxy may pass on. */
export const metricsSpellings: ReadonlyArray<string> = [
  ...["/metrics", "/metrics?a=b", "/%6detrics", "/metric%73", "/%6D%65%74%72%69%63%73"],
  ...["//metrics", "/./metrics", "/a/../metrics", "/metrics/", "/metrics/.", "/metrics;a=b"],
  ...["/METRICS", "/metrics%00", "/metrics%3Fa", "/metrics#a", "/%2Fmetrics", "/metrics%2F"]
]

/** Ports of the service, and of the proxy with and without TLS. */
export interface Ports {
  readonly service: number
  readonly tls: number
  readonly plain: number
  /** Idle connections to the service that nginx keeps; threads of HAProxy, which each keep some. */
  readonly upstreams?: number
}

export type ProxyName = "nginx" | "haproxy" | "caddy"

/** The program of each proxy, its arguments and its environment. */
const commands: Readonly<
  Record<
    ProxyName,
    (folder: string, ports: Ports) => readonly [
      args: ReadonlyArray<string>,
      env: Readonly<Record<string, string>>
    ]
  >
> = {
  nginx: (folder, ports) => [["-c", nginxFile(folder, ports), "-p", folder], {}],
  haproxy: (folder, ports) => [["-db", "-f", haproxyFile(folder, ports)], {}],
  caddy: (folder, ports) => [
    ["run", "--adapter", "caddyfile", "--config", caddyFile(folder, ports)],
    { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
  ]
}

/** Starts the proxy of this name. */
export const startProxy = (proxy: ProxyName, ports: Ports): Proxy => {
  const folder = temporaryFolder()
  certify(folder)
  const running = new Running(toolOf(proxy), ...commands[proxy](folder, ports))
  return { running, log: join(folder, "access.log"), folder }
}
