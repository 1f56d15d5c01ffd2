"use strict";
// Put behind the core of MiniWoB++ on its pages: begins one episode by itself,
// with the seed of the address and time enough, and reports instruction and
// reward like every page of this site.
{
  const query = new URLSearchParams(location.search), run = query.get("run") || "";
  const report = (where, body) => fetch(where, {method: "POST", body: JSON.stringify({run, body}), keepalive: true});
  let begun = false;
  core.startEpisode = () => {
    if (begun) return;
    begun = true;
    Math.seedrandom(query.get("seed") || "1");
    core.EPISODE_MAX_TIME = 55000;
    core.createDisplay();
    core.cover_div = document.createElement("div");
    core.startEpisodeReal();
    const tell = () => WOB_TASK_READY ? report("/begin", core.getUtterance() || "Do what the page says.") : setTimeout(tell, 50);
    tell();
  };
  const end = core.endEpisode;
  core.endEpisode = (reward, timed, reason) => {
    if (core.EP_TIMER === null) return;
    report("/score", {ok: reward > 0.99, detail: `reward ${reward}${reason ? ", " + reason : ""}`});
    end(reward, false, reason);
  };
}
