// The numbers of the page move as the server looks at the queues. Without this, a page shows those of the moment when it was made.
"use strict";
const problem = document.getElementById("problem");
const events = new EventSource("/live");
events.onmessage = (event) => {
  const { queues, problem: why } = JSON.parse(event.data);
  problem.hidden = !why;
  problem.textContent = why ? "The numbers stand still: " + why : "";
  for (const place of document.querySelectorAll("[data-queue]")) {
    const numbers = queues[place.dataset.queue];
    if (!numbers) continue;
    for (const cell of place.querySelectorAll("[data-cell]")) {
      const text = numbers[cell.dataset.cell];
      if (cell.textContent !== text) cell.textContent = text;
      if (cell.dataset.cell === "state") {
        const badge = cell.closest(".state");
        if (badge) badge.className = "state " + text;
      }
    }
    const line = place.querySelector("polyline");
    if (line) line.setAttribute("points", numbers.points);
  }
};
events.onerror = () => {
  problem.hidden = false;
  problem.textContent = "The console does not answer: the numbers stand still.";
};
