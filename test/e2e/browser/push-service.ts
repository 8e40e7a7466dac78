/**
 * A push service on loopback: it takes pushes (RFC 8030), and hands them to Firefox over the
 * WebSocket by which that browser subscribes.
 */
import { type ListenSocket, loadNative } from "../../../http/wire/native-module.ts"

/** A push, as the service has sent it. */
interface Push {
  readonly channel: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** A message of Firefox (autopush, protocol version 2); a ping is an empty object. */
interface Asked {
  readonly messageType?: string
  readonly channelID?: string
}

/** Sends a message to a browser. */
type Sender = (message: object) => void

export interface PushService {
  readonly origin: string
  /** The endpoint of a channel. */
  readonly at: (channel: string) => string
  /** All pushes to a channel, in their order. */
  readonly pushes: (channel: string) => ReadonlyArray<Push>
  /** The channels of the connected browsers. */
  readonly channels: () => ReadonlyArray<string>
  /** Ends all subscriptions of the connected browsers, as after a loss of the push service. */
  readonly forget: () => void
  readonly close: () => void
}

/** What the push service keeps. */
class Subscriptions {
  readonly pushes: Array<Push> = []
  readonly channels = new Map<string, Sender>()
  private readonly ended = new Set<string>()
  private agents = 0

  /** Answers a message of a browser. */
  receive({ channelID = "", messageType }: Asked, send: Sender, endpointOf: string): void {
    switch (messageType) {
      case undefined:
        return send({})
      case "hello":
        // Another name than before ends what the browser has subscribed to.
        return send({ messageType, status: 200, uaid: `agent-${++this.agents}`, use_webpush: true })
      case "register":
        this.channels.set(channelID, send)
        return send({ messageType, status: 200, channelID, pushEndpoint: endpointOf + channelID })
      case "unregister":
        this.channels.delete(channelID)
        this.ended.add(channelID)
        return send({ messageType, status: 200, channelID })
      default:
        // An acknowledgment has no answer.
    }
  }

  /** Takes a push; returns the status of the answer. */
  push(push: Push): string {
    if (this.ended.has(push.channel)) return "410 Gone"
    this.pushes.push(push)
    this.channels.get(push.channel)?.({
      messageType: "notification",
      channelID: push.channel,
      version: String(this.pushes.length),
      data: push.body.toString("base64url"),
      headers: { encoding: push.headers["content-encoding"] }
    })
    return "201 Created"
  }

  end(): void {
    for (const channel of this.channels.keys()) this.ended.add(channel)
    this.channels.clear()
  }
}

/** Starts it on a free port. */
export const startPushService = async (): Promise<PushService> => {
  const { App, us_listen_socket_close, us_socket_local_port } = loadNative()
  const subscriptions = new Subscriptions()
  const connections = new Set<{ readonly close: () => void }>()
  let origin = ""
  const app = App()
    .ws<object>("/*", {
      open: (socket) => void connections.add(socket),
      close: (socket) => void connections.delete(socket),
      message: (socket, message) => {
        // The browser sends nothing else.
        const asked = JSON.parse(Buffer.from(message).toString()) as Asked
        const send: Sender = (answer) => {
          if (connections.has(socket)) socket.send(JSON.stringify(answer))
        }
        subscriptions.receive(asked, send, `${origin}/push/`)
      }
    })
    .post("/push/:channel", (response, request) => {
      const headers: Record<string, string> = {}
      request.forEach((name, value) => void (headers[name] = value))
      const channel = request.getParameter(0) ?? ""
      const chunks: Array<Buffer> = []
      response.onAborted(() => {})
      response.onData((chunk, isLast) => {
        chunks.push(Buffer.from(new Uint8Array(chunk)))
        if (!isLast) return
        response.writeStatus(subscriptions.push({ channel, headers, body: Buffer.concat(chunks) }))
        response.end()
      })
    })
  const listening = await new Promise<ListenSocket>((resolve, reject) => {
    app.listen("127.0.0.1", 0, (socket) => {
      if (socket === false) reject(new Error("the push service does not listen"))
      else resolve(socket)
    })
  })
  origin = `http://127.0.0.1:${us_socket_local_port(listening)}`
  const disconnect = () => {
    for (const connection of [...connections]) connection.close()
  }
  return {
    origin,
    at: (channel) => `${origin}/push/${channel}`,
    pushes: (channel) => subscriptions.pushes.filter((push) => push.channel === channel),
    channels: () => [...subscriptions.channels.keys()],
    forget: () => {
      subscriptions.end()
      disconnect()
    },
    close: () => {
      disconnect()
      us_listen_socket_close(listening)
    }
  }
}
